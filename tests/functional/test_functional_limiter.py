"""One provider, many sessions, through the command line: who waits, who is not even begun."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
import trio
from attrs import define, field

from functional_cli import KEY, MAIN_RECIPE, Bench, Job, Json
from wire import Answer, Delivery, Refuse, Reply, Say, Seen, serve
from wire.server import Chooser

BARE: Json = {**dict.fromkeys(MAIN_RECIPE), "limits": {"seconds": 60, "working_seconds": 20}}
NO_CREDIT = Refuse(429, {"error": {"code": "insufficient_quota", "message": "no credit left"}})
FREE = {"cost": {"input": 0.0, "output": 0.0}}


@define
class Batch:
    """A run of recipes with a matrix each, all asking the providers of one server."""

    bench: Bench
    choosers: dict[str, Chooser]
    """By model; provider and model have one name."""
    providers: dict[str, Json] = field(factory=dict)
    """In place of keys of a provider's settings."""
    recipes: list[Path] = field(factory=list)

    def add(self, name: str, models: Sequence[str], sessions: int, **more: Any) -> None:
        recipe = {
            "name": name,
            "model": [f"{model}/{model}" for model in models],
            "prompt": "Say hello ({{ n }}).",
            "matrix": {"n": list(range(sessions))},
            **{key: value for key, value in BARE.items() if value is not None},
            **more,
        }
        path = self.bench.folder / "recipes" / f"{name}.json"
        path.write_text(json.dumps(recipe), encoding="utf-8")
        self.recipes.append(path)

    async def carry_out(self, *arguments: str) -> tuple[int, tuple[Seen, ...], Path]:
        async with serve(self.choosers, key=KEY) as server:
            entries = {
                name: self.bench.write_job(
                    Job(name, (), "openai-chat", {}, self.providers.get(name, {}), FREE),
                    server.anthropic_url,
                )[1]
                for name in self.choosers
            }
            config = self.bench.folder / "config.json"
            config.write_text(json.dumps({"provider": entries}), encoding="utf-8")
            config.chmod(0o600)
            words = [str(path) for path in self.recipes]
            done = await self.bench.run("run", *words, "--config", str(config), *arguments)
            (folder,) = (self.bench.project / ".harness" / "runs").glob("run_*")
            return done.returncode, tuple(server.requests), folder / "run.duckdb"


@pytest.fixture
def batch(tmp_path: Path) -> Batch:
    bench = Bench(tmp_path)
    bench.set_up()
    return Batch(bench, {})


def ask(database: Path, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(database), read_only=True) as connection:
        return connection.execute(sql).fetchall()


OUTCOMES = "SELECT status, reason, count(*) FROM session GROUP BY ALL ORDER BY ALL"


async def test_two_refused_keys_in_a_row_spare_the_rest_the_try(batch: Batch) -> None:
    batch.choosers["mine"] = lambda _: Reply(Say("Hello."))
    batch.providers["mine"] = {"api_key": "sk-wrong-0123456789"}
    batch.add("greet", ["mine"], 6)

    code, requests, database = await batch.carry_out("-j", "1")

    assert code == 3
    assert len(requests) == 2
    assert ask(database, OUTCOMES) == [
        ("errored", "provider_auth", 2),
        ("skipped", "provider_unavailable", 4),
    ]
    assert ask(database, "SELECT provider, cause, requests, before FROM provider_limit") == [
        ("mine", "auth", 0, 16)
    ]
    assert ask(database, "SELECT closed FROM rate_limits") == [(True,)]
    (told,) = ask(database, "SELECT text FROM notice WHERE level = 'error'")
    assert "provider mine is asked no more: the key is refused" in told[0]


async def test_an_open_circuit_goes_straight_to_the_next_model(batch: Batch) -> None:
    batch.choosers["poor"] = lambda _: NO_CREDIT
    batch.choosers["good"] = lambda _: Reply(Say("Hello."))
    batch.add("listed", ["poor", "good"], 5)
    batch.add("only", ["poor"], 2)

    code, requests, database = await batch.carry_out("-j", "1")

    assert code == 3, "nothing failed or errored, but two were never tried"
    assert [seen.model for seen in requests] == ["poor", "good"] * 2 + ["good"] * 3
    assert ask(database, OUTCOMES) == [
        ("passed", None, 5),
        ("skipped", "provider_unavailable", 2),
    ]


async def test_a_429_holds_the_other_sessions_and_no_working_time_passes(batch: Batch) -> None:
    times: list[tuple[str, float]] = []

    def answer(seen: Seen) -> Answer:
        times.append((str(seen.json["messages"][-1]["content"]), trio.current_time()))
        if len(times) == 1:
            error = {"error": {"type": "rate_limit_error", "message": "slow down"}}
            return Refuse(429, error, {"retry-after-ms": "2500"})
        return Reply(Say("Hello."))

    batch.choosers["mine"] = answer
    limits = {"seconds": 60, "working_seconds": 2.4}
    batch.add("first", ["mine"], 1, limits=limits)
    # Its workspace takes a moment: when it could ask, the provider has refused the other one.
    batch.add("late", ["mine"], 1, limits=limits, workspace={"setup": ["sleep 1"]})

    code, requests, database = await batch.carry_out("-j", "2")

    assert code == 0
    assert len(requests) == 3
    hit, *later = times
    assert {when - hit[1] >= 2.5 for _, when in later} == {True}
    changes = ask(
        database,
        "SELECT cause, requests, before, cool_down_s FROM provider_limit ORDER BY seq LIMIT 1",
    )
    assert changes == [("rate_limit", 1, 16, 2.5)]
    waited = ask(database, "SELECT wall_s - working_s FROM attempt ORDER BY 1")
    assert waited[0][0] > 0.5
    assert waited[1][0] > 2.4
    columns = "rate_limited, cool_downs, least_requests"
    assert ask(database, f"SELECT {columns} FROM rate_limits") == [(1, 1, 1)]


async def test_low_quotas_in_the_headers_narrow_the_door(batch: Batch) -> None:
    left = iter(["40", "900"])

    def answer(seen: Seen) -> Answer:
        del seen
        headers = {"x-ratelimit-limit-tokens": "1000", "x-ratelimit-remaining-tokens": next(left)}
        return Reply(Say("Hello."), delivery=Delivery(headers=headers))

    batch.choosers["mine"] = answer
    batch.add("greet", ["mine"], 2)

    code, _, database = await batch.carry_out("-j", "1")

    assert code == 0
    columns = "cause, before, requests, share_left"
    assert ask(database, f"SELECT {columns} FROM provider_limit ORDER BY seq") == [
        ("headroom", 16, 6, 0.04),
        ("headroom", 6, 16, 0.9),
    ]
