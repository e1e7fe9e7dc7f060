"""kill -9 of the runner, at named points and at any: nothing is lost, nothing lives on, and a
resumed run finishes what was left without doing anything twice. The server's own log is the judge.
"""

import fcntl
import random
from pathlib import Path

import trio

from crash_cli import Stage, bash, says, write
from harness_batch.app.finish import reported
from harness_batch.events import (
    ModelCallClosed,
    ModelCallOpened,
    PartDelta,
    PartUpdated,
    RunFinished,
    SessionFinished,
    SessionUpdated,
)
from harness_batch.messages import Running, ToolUse
from harness_batch.store.folder import RunFolder
from wire import Answer, Call, Delivery, Reply, Say, Seen, Usage, serve

PRICE = {"input": 10.0, "output": 30.0}
"""US dollars a million tokens."""


async def killed(stage: Stage, run: trio.Process) -> None:
    """Kill it and look at what must hold at once."""
    run.kill()
    await run.wait()
    await stage.nothing_survives()
    assert stage.events(), "the journal replays"
    assert reported(RunFolder(stage.out)).run.exit_code in (None, 0)
    stage.database_is_the_journal()


async def test_killed_in_the_middle_of_a_stream_the_open_call_counts_at_its_ceiling(
    stage: Stage,
) -> None:
    slow = Reply(Say("word " * 4000), delivery=Delivery(chunk=40, pause=0.05))
    async with serve([slow]) as server:
        recipe = stage.recipe(model="mine/m", matrix={"n": [1, 2]})
        config = stage.config(server.openai_url, cost=PRICE)
        words = stage.in_out(recipe, "--config", config, "-j", "2")
        async with stage.running(*words) as run:
            await stage.until(lambda event: isinstance(event.payload, PartDelta), count=3)
            await killed(stage, run)
        ceilings = [float(p.reserved_usd) for p in stage.payloads(ModelCallOpened)]
        assert len(ceilings) == len(server.requests) == 2
        assert stage.counts() == {None: 2}
        # What is left of this budget is less than one call's ceiling: none is made.
        budget = f"{sum(ceilings) + min(ceilings) / 2:.6f}"
        again = await stage.call(*words, "--resume", "last", "--max-cost", budget, "--json")
        assert len(server.requests) == 2, "no call fitted into what the dead ones left"
    assert again.code == 4, again.err
    assert stage.counts() == {"skipped": 2}
    dead = stage.ask("SELECT status, reason, error_kind FROM attempt WHERE n = 1")
    assert dead == [("errored", "killed", "infra")] * 2
    assert again.json()["exit_code"] == 4


async def test_killed_while_a_tool_runs_its_daemons_die_and_the_session_goes_on_as_a_new_attempt(
    stage: Stage,
) -> None:
    flag = stage.root / "second"
    recipe = stage.recipe()
    stage.script(
        says("", write("new.txt", "new\n")),
        says("", bash(f"test -e {flag} || {{ {stage.demons()}; }}")),
        says("done"),
    )
    before = stage.checkout()
    async with stage.running(*stage.in_out(recipe)) as run:
        await stage.until(
            lambda event: (
                isinstance(event.payload, PartUpdated)
                and isinstance(event.payload.part.body, ToolUse)
                and isinstance(event.payload.part.body.state, Running)
                and event.payload.part.body.name == "bash"
            )
        )
        await stage.something_lives(4)
        await killed(stage, run)
    assert stage.checkout() == before
    assert len(stage.leftovers()) == 2, "its work tree and its TMPDIR"
    flag.touch()
    again = await stage.call(*stage.in_out(recipe, "--resume", "last"))
    assert again.code == 0, again.err
    assert stage.statuses() == {"work": ("passed", None, 2)}
    assert stage.ask("SELECT n, status, reason FROM attempt ORDER BY n") == [
        (1, "errored", "killed"),
        (2, "passed", None),
    ]
    assert "+new\n" in stage.patch("work", 2)
    assert stage.leftovers() == [], "the next run swept up"
    stage.database_is_the_journal()
    assert stage.checkout() == before


def slow_git(stage: Stage, word: str) -> Path:
    """A folder with a git that hangs in one of its commands, under the mark."""
    folder = stage.root / "bin"
    folder.mkdir()
    program = folder / "git"
    program.write_text(
        f'#!/bin/bash\nfor w in "$@"; do [ "$w" = {word} ] && {stage.sleeper()}; done\n'
        f'PATH="${{PATH#{folder}:}}" exec git "$@"\n'
    )
    program.chmod(0o755)
    return folder


async def test_killed_while_the_patch_is_taken(stage: Stage) -> None:
    recipe = stage.recipe()
    stage.script(says("", write("new.txt", "new\n")), says("done"))
    path = stage.environ()["PATH"]
    slow = f"{slow_git(stage, 'diff-tree')}:{path}"
    async with stage.running(*stage.in_out(recipe), PATH=slow) as run:
        await stage.something_lives()
        await killed(stage, run)
    again = await stage.call(*stage.in_out(recipe, "--resume", "last"))
    assert again.code == 0, again.err
    assert stage.statuses() == {"work": ("passed", None, 2)}
    assert "+new\n" in stage.patch("work", 2)
    assert stage.leftovers() == []


async def test_killed_while_reports_are_written_nothing_is_run_again(stage: Stage) -> None:
    history = stage.root / "history.duckdb"
    async with serve([Reply(Say("done"))]) as server:
        recipe = stage.recipe(model="mine/m", matrix={"n": [1, 2, 3]})
        words = stage.in_out(recipe, "--config", stage.config(server.openai_url), "--db", history)
        with history.with_name("history.duckdb.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            async with stage.running(*words) as run:
                await stage.until(lambda event: isinstance(event.payload, RunFinished))
                await killed(stage, run)
        assert not (stage.out / "junit.xml").exists()
        again = await stage.call(*words, "--resume", "last", "--json")
        assert len(server.requests) == 3
    assert again.code == 0, again.err
    assert again.json()["exit_code"] == 0
    assert (stage.out / "junit.xml").exists()
    assert stage.counts() == {"passed": 3}
    runs = await stage.call("query", "SELECT count(*) AS n FROM session", "--db", history,
                            "--format", "csv")  # fmt: skip
    assert runs.out == "n\n3\n"


def three_steps(seen: Seen) -> Answer:
    """Write a file of the item, look at it, end."""
    name = item_of(seen)
    usage = Usage(input=1000, output=100)
    match seen.step:
        case 0:
            call = Call("write", {"file_path": f"{name}.txt", "content": f"{name}\n"})
            return Reply(call, usage=usage)
        case 1:
            return Reply(Call("bash", {"command": f"cat {name}.txt"}), usage=usage)
        case _:
            return Reply(Say(f"wrote {name}"), usage=usage)


def item_of(seen: Seen) -> str:
    """Which item a request is about, by its prompt."""
    return next(name for name in ITEMS if f"<{name}>" in str(seen.json["messages"]))


ITEMS = ("alpha", "beta", "gamma", "delta", "epsilon")


async def test_killed_at_any_moment_and_resumed_until_it_is_done(stage: Stage) -> None:
    chance = random.Random(7)
    before = stage.checkout()
    async with serve(three_steps) as server:
        recipe = stage.recipe(
            model="mine/m", prompt="Work on <{{ name }}>.", matrix={"name": list(ITEMS)}
        )
        config = stage.config(server.openai_url, cost=PRICE)
        words = stage.in_out(recipe, "--config", config, "-j", "2", "--resume", "last")
        finished: set[str] = set()
        for _ in range(3):
            asked = len(server.requests)
            async with stage.running(*words) as run:
                seen = len(stage.events()) if stage.journal.exists() else 0
                await stage.until(lambda _: True, seen + chance.randrange(5, 60), run)
                run.kill()
                await run.wait()
            await stage.nothing_survives()
            again = {item_of(request) for request in server.requests[asked:]}
            assert not again & finished, "a finished session was asked for again"
            finished = finished_in(stage)
        asked = len(server.requests)
        last = await stage.call(*words, "--json")
        assert not {item_of(request) for request in server.requests[asked:]} & finished
        requests = len(server.requests)
    assert last.code == 0, last.err
    assert last.json()["exit_code"] == 0
    assert stage.counts() == {"passed": 5}
    opened, closed = stage.payloads(ModelCallOpened), stage.payloads(ModelCallClosed)
    assert len(opened) >= requests, "no request without its intent"
    assert stage.ask("SELECT count(*) FROM model_call") == [(len(opened),)]
    ended = {p.call.model_call_id for p in closed}
    assert all(p.reserved_usd is not None for p in opened if p.call.model_call_id not in ended)
    for n, status, reason in stage.ask("SELECT n, status, reason FROM attempt"):
        assert (status, reason) in {("passed", None), ("errored", "killed")}, n
    for name in ITEMS:
        key = f"work/name={name}"
        assert f"+{name}\n" in stage.patch(key, stage.statuses()[key][2])
    assert stage.checkout() == before
    assert stage.leftovers() == []
    stage.database_is_the_journal()


def finished_in(stage: Stage) -> set[str]:
    """Items whose session has ended on merit, as the journal says."""
    sessions = {p.session.session_id: p.session.item_key for p in stage.payloads(SessionUpdated)}
    ended = {p.attempt.session_id for p in stage.payloads(SessionFinished)
             if p.attempt.status == "passed"}  # fmt: skip
    return {sessions[key].rpartition("=")[2] for key in ended if key in sessions}


async def test_an_item_whose_recipe_changed_runs_again_in_its_session(stage: Stage) -> None:
    recipe = stage.recipe(matrix={"n": [1, 2]})
    stage.script(says("first"))
    assert (await stage.call(*stage.in_out(recipe))).code == 0
    stage.script(says("second"))
    again = await stage.call(*stage.in_out(recipe, "--resume", "last", "--only", "work/n=2"))
    assert again.code == 0, again.err
    assert stage.statuses() == {"work/n=1": ("passed", None, 1), "work/n=2": ("passed", None, 2)}
    answers = stage.ask("SELECT answer FROM report_session ORDER BY item_key")
    assert answers == [("first",), ("second",)]


async def test_rerun_says_what_runs_again(stage: Stage) -> None:
    recipes = [
        stage.recipe("good"),
        stage.recipe("bad", checks=[{"name": "no", "run": "false"}]),
        stage.recipe("broken", workspace={"setup": ["false"]}),
    ]
    for name in ("good", "bad", "broken"):
        stage.script(says("done"), name=name)
    tries = []
    for words in ((), ("--rerun", "errored"), ("--rerun", "failed")):
        done = await stage.call(*stage.in_out(*recipes, *words))
        assert done.code == 1, done.err
        tries.append([stage.statuses()[name][2] for name in ("good", "bad", "broken")])
    assert tries == [[1, 1, 1], [1, 1, 2], [1, 2, 3]]
    stage.database_is_the_journal()


async def test_resume_of_nothing_starts_fresh_and_says_so(stage: Stage) -> None:
    recipe = stage.recipe()
    stage.script(says("done"))
    stage.out.mkdir()
    done = await stage.call(*stage.in_out(recipe, "--resume", "last"))
    assert done.code == 0
    assert "no run to resume; starting a new one" in done.err
    other = await stage.call(*stage.in_out(recipe, "--resume", "run_00000000000000000000000000"))
    assert other.code == 2, "another run lies there"
    assert "does not hold that run" in other.err


async def test_a_run_is_resumed_by_its_id(stage: Stage) -> None:
    recipe = stage.recipe()
    stage.script(says("", bash(stage.sleeper())), says("done"))
    async with stage.running("run", recipe) as run:
        await stage.something_lives()
        run.kill()
        await run.wait()
    await stage.nothing_survives()
    stage.script(says("done"))
    (folder,) = (stage.repo / ".harness" / "runs").iterdir()
    again = await stage.call("run", recipe, "--resume", folder.name, "--json")
    assert again.code == 0, again.err
    assert again.json()["run_id"] == folder.name


async def test_killed_between_two_attempts_the_retry_is_still_made(stage: Stage) -> None:
    flag = stage.root / "flag"
    check = {"type": "shell", "command": f"test -e {flag}"}
    recipe = stage.recipe(retry={"max_retries": 1, "checks": [check]})
    stage.script(says("done"))
    assert (await stage.call(*stage.in_out(recipe))).code == 1
    lines = stage.journal.read_bytes().splitlines(keepends=True)
    first = next(n for n, line in enumerate(lines, 1) if b'"type":"session_finished"' in line)
    stage.journal.write_bytes(b"".join(lines[:first]))
    flag.touch()
    again = await stage.call(*stage.in_out(recipe, "--resume", "last"))
    assert again.code == 0, again.err
    assert stage.statuses() == {"work": ("passed", None, 2)}
    stage.database_is_the_journal()
