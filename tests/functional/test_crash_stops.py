"""Stops of the run and limits of a session: nothing is overspent, statuses and codes are true."""

from decimal import Decimal

from crash_cli import Stage, bash, says, write
from harness_batch.events import ModelCallClosed, ModelCallOpened
from wire import Answer, Call, Refuse, Reply, Say, Seen, Tries, Usage, serve

PRICE = {"input": 10.0, "output": 30.0}


async def test_eight_sessions_racing_for_a_budget_never_spend_more(stage: Stage) -> None:
    def dear(seen: Seen) -> Answer:
        call = Call("bash", {"command": f"echo {seen.step}"})
        most = seen.json.get("max_completion_tokens") or seen.json["max_tokens"]
        return Reply(call, usage=Usage(input=4000, output=min(900, most)))  # 0.067 USD at most

    async with serve(dear) as server:
        recipe = stage.recipe(model="mine/m", matrix={"n": list(range(12))})
        config = stage.config(server.openai_url, cost=PRICE)
        words = stage.in_out(recipe, "--config", config, "-j", "8", "--max-cost", "0.50", "--json")
        done = await stage.call(*words)
        requests = len(server.requests)
    assert done.code == 4, done.err
    ((spent,),) = stage.ask("SELECT sum(cost_usd) FROM model_call")
    assert Decimal("0.2") < spent <= Decimal("0.50")
    settled = sum(Decimal(p.settled_usd) for p in stage.payloads(ModelCallClosed))
    assert settled == spent
    assert len(stage.payloads(ModelCallOpened)) == requests
    reasons = {(status, reason) for status, reason, _ in stage.statuses().values()}
    assert reasons == {("failed", "max_cost"), ("skipped", "not_admitted")}
    assert done.json()["exit_code"] == 4


async def test_nothing_new_is_begun_when_little_of_the_budget_is_left(stage: Stage) -> None:
    usage = Usage(input=10_000, output=500)  # 0.115 USD
    async with serve([Reply(Say("done"), usage=usage)]) as server:
        recipe = stage.recipe(model="mine/m", matrix={"n": [1, 2]})
        config = stage.config(server.openai_url, cost=PRICE)
        words = stage.in_out(recipe, "--config", config, "-j", "1")
        done = await stage.call(*words, "--max-cost", "0.14")
        assert done.code == 4, done.err
        assert stage.counts() == {"passed": 1, "skipped": 1}
        more = await stage.call(*words, "--max-cost", "0.50", "--resume", "last")
    assert more.code == 0, more.err
    assert stage.counts() == {"passed": 2}
    assert len(server.requests) == 2


async def test_max_time_stops_what_runs_and_skips_the_rest(stage: Stage) -> None:
    recipe = stage.recipe(matrix={"n": [1, 2, 3]})
    stage.script(says("", write("new.txt", "new\n"), bash(stage.sleeper())), says("done"))
    done = await stage.call(*stage.in_out(recipe, "-j", "2", "--max-time", "2s"))
    assert done.code == 4, done.err
    assert done.seconds < 12
    assert sorted((s, r) for s, r, _ in stage.statuses().values()) == [
        ("failed", "max_time"),
        ("failed", "max_time"),
        ("skipped", "not_admitted"),
    ]
    assert "+new\n" in stage.patch("work/n=1")
    await stage.nothing_survives()


async def test_max_failures_cancels_what_runs_and_skips_the_rest(stage: Stage) -> None:
    bad = stage.recipe("bad", matrix={"n": [1, 2]}, checks=[{"name": "no", "run": "false"}])
    slow, late = stage.recipe("slow"), stage.recipe("late")
    stage.script(says("done"), name="bad")
    stage.script(says("", bash(stage.sleeper())), name="slow")
    stage.script(says("done"), name="late")
    words = stage.in_out(slow, bad, late, "-j", "2", "--max-failures", "2")
    done = await stage.call(*words)
    assert done.code == 4, done.err
    assert {key: (s, r) for key, (s, r, _) in stage.statuses().items()} == {
        "bad/n=1": ("failed", "check:no"),
        "bad/n=2": ("failed", "check:no"),
        "slow": ("cancelled", "max_failures"),
        "late": ("skipped", "not_admitted"),
    }
    await stage.nothing_survives()


async def test_time_limits_of_a_session_count_what_they_say(stage: Stage) -> None:
    wait = Refuse(429, {"error": {"message": "slow down"}}, {"retry-after": "2"})
    async with serve([Tries(wait, Reply(Say("done")))]) as server:
        config = stage.config(server.openai_url)
        recipes = [
            stage.recipe("seconds", limits={"seconds": 1}),
            stage.recipe("working", limits={"working_seconds": 1}),
            stage.recipe("waiting", model="mine/m", limits={"working_seconds": 1.5}),
        ]
        for name in ("seconds", "working"):
            stage.script(says("", bash(stage.sleeper())), name=name)
        done = await stage.call(*stage.in_out(*recipes, "--config", config))
    assert done.code == 1, done.err
    assert {key: (s, r) for key, (s, r, _) in stage.statuses().items()} == {
        "seconds": ("failed", "max_time"),
        "working": ("failed", "max_working_seconds"),
        "waiting": ("passed", None),
    }
    ((wall, working),) = stage.ask(
        "SELECT wall_s, working_s FROM report_session WHERE item_key = 'waiting'"
    )
    assert wall - working >= 2
    await stage.nothing_survives()
