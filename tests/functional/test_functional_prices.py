"""What a run costs, without a price in the configuration, and what it would cost today."""

import json
import subprocess
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest
import trio
from attrs import frozen

from functional_cli import KEY, Bench, Json
from wire import Reply, Say, Seen, Usage, serve

SONNET = "claude-sonnet-4-5"
"""At 3 and 15 USD, 0.30 from the cache, 3.75 and 6 into it, 64,000 tokens of output."""
SCRIPTS = {
    # 1,000*3 + 2,000*0.30 + 300*3.75 + 100*6 + 50*15 = 3,000 + 600 + 1,125 + 600 + 750 = 6,075
    SONNET: Reply(
        Say("Done."),
        usage=Usage(input=1000, cache_read=2000, cache_write_5m=300, cache_write_1h=100, output=50),
    ),
    "routed": Reply(Say("Done."), usage=Usage(input=1000, output=100, cost=0.0021)),
    "plain": Reply(Say("Done."), usage=Usage(input=1000, output=100)),
    # 1,000 of 3,000 tokens came from a cache that has no price.
    "partly": Reply(Say("Done."), usage=Usage(input=2000, cache_read=1000, output=100)),
    # 1,000*2 + 100*4 = 2,400; the provider says 3,000.
    "both": Reply(Say("Done."), usage=Usage(input=1000, output=100, cost=0.003)),
}
OPEN = {"anthropic": SONNET, "router": "routed", "local": "plain", "half": "partly", "dear": "both"}
"""Provider -> its model."""


@frozen
class Ran:
    bench: Bench
    config: Path
    done: subprocess.CompletedProcess[bytes]
    requests: tuple[Seen, ...]

    def rows(self, sql: str) -> list[Json]:
        with duckdb.connect(str(self.bench.project / "out/run.duckdb"), read_only=True) as base:
            cursor = base.execute(sql)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def call(self, provider: str) -> Json:
        (row,) = self.rows(f"SELECT * FROM model_call WHERE provider = '{provider}'")
        return row

    def asked(self, *words: str) -> Any:
        """The answer of a command, as JSON."""
        done = trio.run(partial(self.bench.run, *words))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    bench = Bench(tmp_path_factory.mktemp("prices"))
    bench.set_up()
    return trio.run(_ran, bench)


async def _ran(bench: Bench) -> Ran:
    models = {model: [reply] for model, reply in SCRIPTS.items()}
    async with serve(models, key=KEY) as server:
        config = bench.folder / "config.json"
        config.write_text(json.dumps({"provider": _providers(server.anthropic_url)}))
        config.chmod(0o600)
        recipes = [_recipe(bench, provider, model) for provider, model in OPEN.items()]
        done = await bench.run("run", *recipes, "--config", str(config), "--out", "out")
        return Ran(bench, config, done, tuple(server.requests))


def _providers(url: str) -> Json:
    chat = {"type": "openai-chat", "base_url": f"{url}/v1", "api_key": "{env:WIRE_KEY}"}
    half = {"partly": {"cost": {"input": 2.0, "output": 4.0}}}
    both = {"both": {"cost": {"input": 2.0, "output": 4.0}}}
    return {
        "anthropic": {"base_url": url, "api_key": "{env:WIRE_KEY}"},
        "router": chat,
        "local": chat,
        "half": chat | {"models": half},
        "dear": chat | {"models": both},
    }


def _recipe(bench: Bench, provider: str, model: str) -> str:
    limits: Json = {"output_tokens": 100_000}
    if provider == "anthropic":
        limits |= {"cost_usd": 2}
    recipe = {
        "name": provider,
        "model": f"{provider}/{model}",
        "prompt": "Say that you are done.",
        "limits": limits,
    }
    path = bench.folder / "recipes" / f"{provider}.json"
    path.write_text(json.dumps(recipe), encoding="utf-8")
    return str(path)


def test_a_known_model_is_priced_and_bounded_without_configuration(ran: Ran) -> None:
    assert ran.done.returncode == 0, ran.done.stderr
    call = ran.call("anthropic")
    assert call["cost_usd"] == Decimal("0.006075")
    assert call["cost_source"] == "catalog"
    assert call["price_version"].startswith("genai-prices-")
    assert call["input_tokens"] == 3400
    (request,) = (seen for seen in ran.requests if seen.model == SONNET)
    assert request.json["max_tokens"] == 64_000


def test_the_prices_that_a_run_used_are_kept(ran: Ran) -> None:
    rows = ran.rows("SELECT * FROM price WHERE provider = 'anthropic'")
    found = {row["unit"]: row["usd_per_mtok"] for row in rows}
    assert found["input"] == 3
    assert found["cache_write_1h"] == 6
    assert found["input>200000"] == 6
    assert {row["price_version"] for row in rows} == {ran.call("anthropic")["price_version"]}
    (own,) = ran.rows("SELECT DISTINCT price_version FROM price WHERE provider = 'dear'")
    assert own["price_version"] == ran.call("dear")["price_version"]
    assert own["price_version"].startswith("config-")
    history = ran.asked("query", "SELECT count(*) AS n FROM price", "--format", "json")
    assert history == [{"n": len(ran.rows("SELECT * FROM price"))}]


def test_the_providers_own_figure_stands_beside_ours_or_in_its_place(ran: Ran) -> None:
    dear = ran.call("dear")
    assert (dear["cost_usd"], dear["provider_cost_usd"]) == (Decimal("0.0024"), Decimal("0.003"))
    assert dear["cost_source"] == "config"
    routed = ran.call("router")
    assert routed["cost_usd"] == routed["provider_cost_usd"] == Decimal("0.0021")
    assert (routed["cost_source"], routed["price_version"]) == ("provider", None)


def test_what_has_no_price_is_null_and_said_everywhere(ran: Ran) -> None:
    for provider in ("local", "half"):
        call = ran.call(provider)
        assert call["cost_usd"] is None
        assert (call["cost_source"], call["price_version"]) == ("unpriced", None)
    folder = ran.bench.project / "out"
    assert "unpriced" in ran.done.stdout.decode()
    assert "unpriced" in (folder / "summary.md").read_text(encoding="utf-8")
    assert "unpriced" in (folder / "junit.xml").read_text(encoding="utf-8")
    sessions = json.loads((folder / "result.json").read_text(encoding="utf-8"))["sessions"]
    costs = {session["item_key"]: session["cost_usd"] for session in sessions}
    assert costs["local"] is None
    assert costs["half"] is None


def test_the_gap_to_the_providers_figures_leaves_out_what_only_they_know(ran: Ran) -> None:
    rows = {row["provider"]: row for row in ran.asked("stats", "price_gap", "--format", "json")}
    assert Decimal(rows["dear"]["gap_usd"]) == Decimal("-0.0006")
    assert rows["router"]["compared_calls"] == 0
    assert rows["local"]["unpriced_calls"] == 1


def test_todays_prices_stand_beside_the_recorded_ones(ran: Ran) -> None:
    """Prices of this moment's configuration, else of the catalog."""
    tree = json.loads(ran.config.read_text())
    tree["provider"]["local"]["models"] = {"plain": {"cost": {"input": 1.0, "output": 2.0}}}
    tree["provider"]["dear"]["models"]["both"]["cost"] = {"input": 4.0, "output": 8.0}
    now = ran.bench.folder / "now.json"
    now.write_text(json.dumps(tree))
    now.chmod(0o600)
    words = ("stats", "--reprice", "--config", str(now), "--format", "json")
    rows = {row["provider"]: row for row in ran.asked(*words)}
    assert rows.keys() == OPEN.keys()

    same = rows["anthropic"]
    assert Decimal(same["recorded_usd"]) == Decimal(same["today_usd"]) == Decimal("0.006075")
    assert Decimal(same["difference_usd"]) == 0
    assert same["recorded_prices"] == same["today_prices"]
    # 1,000*4 + 100*8 = 4,800 instead of 2,400
    assert Decimal(rows["dear"]["today_usd"]) == Decimal("0.0048")
    assert Decimal(rows["dear"]["difference_usd"]) == Decimal("0.0024")
    assert rows["dear"]["difference_share"] == pytest.approx(1.0)
    # 1,000*1 + 100*2 = 1,200, which nobody knew then
    assert rows["local"]["recorded_usd"] is None
    assert Decimal(rows["local"]["today_usd"]) == Decimal("0.0012")
    assert rows["local"]["difference_usd"] is None
    assert (rows["local"]["recorded_unpriced_calls"], rows["local"]["today_unpriced_calls"]) == (
        1,
        0,
    )
    assert rows["half"]["today_usd"] is None
    assert rows["half"]["today_unpriced_calls"] == 1
    assert rows["router"]["recorded_prices"] == "provider"


def test_repricing_is_a_question_of_its_own(ran: Ran) -> None:
    done = trio.run(partial(ran.bench.run, "stats", "latency", "--reprice"))
    assert done.returncode == 2
    assert b"leave out latency" in done.stderr


def test_the_catalog_is_shown_with_limits_abilities_prices_and_where_they_are_from(
    ran: Ran,
) -> None:
    words = ("models", "anthropic", "--search", "sonnet-4-5", "--config", str(ran.config))
    found = ran.asked(*words, "--json")
    (model,) = (entry for entry in found["models"] if entry["model"] == f"anthropic/{SONNET}")
    assert (model["context"], model["output"]) == (200_000, 64_000)
    assert model["abilities"]["images"] is True
    assert model["prices"]["cache_write_1h"] == 6
    assert model["prices"]["tiers"][0]["above"] == 200_000
    assert model["prices"]["version"] == found["prices"]
    assert model["sources"] == ["table", "prices"]
    own = ran.asked("models", "dear", "--config", str(ran.config), "--json")["models"]
    assert [entry["model"] for entry in own] == ["dear/both"]
    assert own[0]["prices"]["input"] == 2
    assert own[0]["prices"]["cache_read"] is None
    done = trio.run(partial(ran.bench.run, *words))
    assert f"anthropic/{SONNET}" in done.stdout.decode()
    refused = trio.run(partial(ran.bench.run, "models", "antropic"))
    assert refused.returncode == 2
    assert b"did you mean `anthropic`?" in refused.stderr


def test_a_recipe_with_a_bound_on_cost_is_valid_when_the_catalog_has_the_price(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"})
    bench.set_up()
    priced, unknown = _recipe(bench, "anthropic", SONNET), bench.folder / "unknown.json"
    tree = json.loads(Path(priced).read_text()) | {"model": "anthropic/nobody-knows-me"}
    unknown.write_text(json.dumps(tree))
    good = trio.run(partial(bench.run, "validate", priced))
    assert good.returncode == 0, good.stderr
    bad = trio.run(partial(bench.run, "validate", str(unknown)))
    assert bad.returncode == 2
    assert b"needs the prices of anthropic/nobody-knows-me" in bad.stderr
