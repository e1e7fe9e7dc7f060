"""Building a plan: who answers, under which rules and limits, and what is refused before a call."""

import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_batch.agents.door import load_agents
from harness_batch.agents.record import Agent, Equipment
from harness_batch.config.record import Config, ModelInfo, Prices, ProviderSettings
from harness_batch.errors import Fault, FaultyInput, UsageError
from harness_batch.limits import Limits
from harness_batch.messages import JsonObject, ModelRef
from harness_batch.plan.build import Overrides, Plan, RepoBase, build_plan
from harness_batch.plan.view import plan_as_json, plan_as_text
from harness_batch.recipe.record import Check, Expectations, Recipe, SandboxWish
from harness_batch.rules import Rule
from plan_fakes import MemoryFiles, MemorySource

PRICES = Prices(input=Decimal(3), output=Decimal(15))
PROVIDERS = {
    "anthropic": ProviderSettings(name="anthropic", type="anthropic"),
    "listed": ProviderSettings(
        name="listed", type="anthropic", models={"big": ModelInfo(prices=PRICES)}
    ),
    "mine": ProviderSettings(
        name="mine",
        type="openai-chat",
        base_url="http://h/v1",
        configured_base_url=True,
        models={"m": ModelInfo(prices=PRICES), "half": ModelInfo(prices=Prices(input=Decimal(1)))},
    ),
    "scripted": ProviderSettings(name="scripted", type="scripted"),
}
CONFIG = Config(providers=PROVIDERS)
NO_FILES = MemoryFiles(())
DEFAULT = (Rule("read", "*", "allow", "default"),)
BASE = RepoBase(Path("/work/app"), "HEAD", "1" * 40)
RECIPE = Recipe(file=Path("/r/fix.yaml"), name="fix", models=("mine/m",), prompt="Do it.")
PLACES: dict[tuple[str | int, ...], tuple[int, int]] = {
    ("model",): (4, 8),
    ("agent",): (5, 8),
    ("limits",): (6, 1),
    ("matrix",): (9, 1),
}


def source(
    recipe: Recipe = RECIPE, matrix: JsonObject | None = None, **defaults: object
) -> MemorySource:
    return MemorySource(recipe=recipe, matrix=matrix, defaults=defaults, places=PLACES)


def plan_of(
    *sources: MemorySource,
    config: Config = CONFIG,
    cli: Overrides = Overrides(),  # noqa: B008 - frozen
    repos: tuple[RepoBase, ...] = (BASE,),
    agents: dict[str, Agent] | None = None,
    given: JsonObject | None = None,
    files: MemoryFiles = NO_FILES,
) -> Plan:
    return build_plan(
        [(one, given or {}) for one in sources],
        config=config,
        equipment=lambda _: Equipment(agents=load_agents() if agents is None else agents),
        repos=lambda _: repos,
        cli=cli,
        default_rules=DEFAULT,
        files=files,
    )


def fault_of(*sources: MemorySource, **more: object) -> str:
    with pytest.raises(FaultyInput) as caught:
        plan_of(*sources, **more)  # type: ignore[arg-type]  # forwarded as given
    return str(caught.value)


def test_an_item_has_everything_decided() -> None:
    plan = plan_of(source(matrix={"package": ["core", "cli"]}))
    assert [item.key for item in plan.items] == ["fix/package=core", "fix/package=cli"]
    item = plan.items[0]
    assert item.folder.startswith("fix_package=core-")
    assert item.models == (ModelRef("mine", "m"),)
    assert item.agent.name == "build"
    assert (item.repo, item.ref, item.base_sha) == ("/work/app", "HEAD", "1" * 40)
    assert item.limits == Limits(steps=50, seconds=1800, output_tokens=8000)
    assert item.matrix == {"package": "core"}
    assert item.refusal is None


def test_matrix_values_and_parameters_are_template_variables() -> None:
    recipe = evolve(RECIPE, prompt="$greeting $n $flag")
    one = source(recipe, {"n": [0], "flag": [False]}, greeting="hi")
    assert plan_of(one).items[0].recipe.prompt == "hi 0 false"
    cli = Overrides(parameters={"greeting": "ho"})
    assert plan_of(one, cli=cli, given={"greeting": "hey"}).items[0].recipe.prompt == "ho 0 false"
    assert plan_of(one, given={"greeting": "hey"}).items[0].params == {"greeting": "hey"}


def test_a_parameter_goes_to_the_recipes_that_declare_it() -> None:
    other = source(evolve(RECIPE, name="other", file=Path("/r/other.yaml")))
    plan = plan_of(source(a="1"), other, cli=Overrides(parameters={"a": "2"}))
    assert [item.params for item in plan.items] == [{"a": "2"}, {}]


def test_a_parameter_that_no_recipe_declares_is_a_usage_error() -> None:
    with pytest.raises(
        UsageError, match=r"-p packages: no recipe declares it; did you mean `package`"
    ):
        plan_of(source(package="x"), cli=Overrides(parameters={"packages": 1}))


def test_the_model_is_the_first_that_is_said() -> None:
    agents = {"build": Agent(name="build", model="mine/agent")}
    config = evolve(CONFIG, model="mine/config")
    silent = evolve(RECIPE, models=())
    model = {
        "-m": "mine/cli",
        "recipe": "mine/recipe",
        "agent": "mine/agent",
        "config": "mine/config",
    }

    def chosen(cli: str | None, recipe: Recipe, some: dict[str, Agent], config: Config) -> str:
        plan = plan_of(source(recipe), cli=Overrides(model=cli), agents=some, config=config)
        return str(plan.items[0].models[0])

    named = evolve(RECIPE, models=("mine/recipe", "mine/fallback"))
    assert chosen("mine/cli", named, agents, config) == model["-m"]
    assert chosen(None, named, agents, config) == model["recipe"]
    assert chosen(None, silent, agents, config) == model["agent"]
    assert chosen(None, silent, load_agents(), config) == model["config"]
    plan = plan_of(source(named))
    assert [str(ref) for ref in plan.items[0].models] == ["mine/recipe", "mine/fallback"]


def test_no_model_at_all_says_how_to_give_one() -> None:
    told = fault_of(source(evolve(RECIPE, models=())))
    assert "say -m PROVIDER/MODEL" in told
    assert "anthropic, listed, mine, scripted" in told


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (
            "antropic/x",
            "unknown provider `antropic` of model `antropic/x`; did you mean `anthropic`?",
        ),
        ("zzz/x", "(configured: anthropic, listed, mine, scripted)"),
        ("noslash", "model `noslash` must be PROVIDER/MODEL"),
        ("listed/bigg", "unknown model `bigg` of provider `listed`; did you mean `big`?"),
        ("scripted/gone.yaml", "there is no file /r/gone.yaml"),
    ],
)
def test_a_model_that_cannot_be_is_told_at_its_place(model: str, expected: str) -> None:
    told = fault_of(source(evolve(RECIPE, models=("mine/m", model))))
    assert expected in told
    assert "/r/fix.yaml:4:8" in told


@pytest.mark.parametrize("model", ["mine/unlisted", "anthropic/any", "mine/a/b:c"])
def test_models_nobody_lists_are_legal_where_lists_are_not_complete(model: str) -> None:
    plan = plan_of(source(evolve(RECIPE, models=(model,))))
    assert str(plan.items[0].models[0]) == model


@pytest.mark.parametrize("model", ["nobody/x", "noslash", "listed/small"])
def test_a_bad_model_of_the_command_line_is_a_usage_error(model: str) -> None:
    with pytest.raises(UsageError, match=r"^-m: "):
        plan_of(source(), cli=Overrides(model=model))


def test_a_fault_says_where_the_model_was_named() -> None:
    silent = source(evolve(RECIPE, models=()))
    agents = {"build": Agent(name="build", model="x/y")}
    assert "(from agent 'build')" in fault_of(silent, agents=agents)
    assert "(from the configuration)" in fault_of(silent, config=evolve(CONFIG, model="x/y"))
    assert "(from -m)" in fault_of(silent, cli=Overrides(model="scripted/gone.yaml"))


def test_a_scripted_file_is_relative_to_the_recipe(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("[]")
    recipe = evolve(RECIPE, file=tmp_path / "x.yaml")
    cli = Overrides(model="scripted/s.yaml", limits=Limits(cost_usd=Decimal(1)))
    (item,) = plan_of(source(recipe), cli=cli).items
    assert item.models == (ModelRef("scripted", str(tmp_path / "s.yaml")),)
    (tmp_path / "s.yaml").write_text("[{text: done}]")
    assert plan_of(source(recipe), cli=cli).items[0].digest != item.digest


def test_an_unknown_small_model_is_a_fault() -> None:
    assert "unknown provider `x`" in fault_of(source(evolve(RECIPE, small_model="x/y")))
    assert "unknown provider `x`" in fault_of(source(), config=evolve(CONFIG, small_model="x/y"))


def test_the_agent_is_the_command_lines_or_the_recipes() -> None:
    assert plan_of(source(evolve(RECIPE, agent="plan"))).items[0].agent.name == "plan"
    assert plan_of(source(), cli=Overrides(agent="review")).items[0].agent.name == "review"


def test_an_unknown_agent_is_told_with_the_nearest() -> None:
    told = fault_of(source(evolve(RECIPE, agent="reviews")))
    assert "/r/fix.yaml:5:8: unknown agent `reviews`; did you mean `review`?" in told
    with pytest.raises(UsageError, match="--agent: unknown agent `x`"):
        plan_of(source(), cli=Overrides(agent="x"))


def test_a_subagent_cannot_lead() -> None:
    agents = {"build": Agent(name="build", mode="subagent")}
    assert "is a subagent" in fault_of(source(), agents=agents)


def test_rules_stand_in_the_order_of_the_stack() -> None:
    config = evolve(CONFIG, rules=(Rule("bash", "1", "allow", "config:c"),))
    agents = {"build": Agent(name="build", rules=(Rule("bash", "2", "deny", "agent:build"),))}
    recipe = evolve(RECIPE, permissions=(Rule("bash", "3", "allow", "recipe:r:1"),))
    cli = Overrides(rules=(Rule("bash", "4", "deny", "cli"),))
    (item,) = plan_of(source(recipe), config=config, agents=agents, cli=cli).items
    assert [rule.source for rule in item.rules] == [
        *("default", "config:c", "agent:build", "recipe:r:1", "cli")
    ]


def test_of_all_limits_the_lowest_wins() -> None:
    config = evolve(CONFIG, limits=Limits(steps=40, tokens=1000))
    agents = {"build": Agent(name="build", steps=30)}
    recipe = evolve(RECIPE, limits=Limits(steps=60, seconds=10))
    cli = Overrides(limits=Limits(steps=35, tokens=2000))
    (item,) = plan_of(source(recipe), config=config, agents=agents, cli=cli).items
    assert item.limits == Limits(steps=30, tokens=1000, seconds=10, output_tokens=8000)


def test_a_repositorys_limits_only_lower_what_would_hold_without_them() -> None:
    config = evolve(CONFIG, ceiling=Limits(steps=80, seconds=60, output_tokens=99_999))
    limits = plan_of(source(), config=config).items[0].limits
    assert limits == Limits(steps=50, seconds=60, output_tokens=8000)
    wide = evolve(RECIPE, limits=Limits(steps=100))
    assert plan_of(source(wide), config=config).items[0].limits.steps == 80


@pytest.mark.parametrize("model", ["mine/unlisted", "mine/half", "anthropic/x"])
@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"limits": Limits(cost_usd=Decimal(1))}, "limits.cost_usd"),
        ({"expect": Expectations(max_cost_usd=Decimal(1))}, "expect.max_cost_usd"),
    ],
)
def test_a_bound_on_cost_needs_prices(model: str, change: dict[str, Any], key: str) -> None:
    recipe = evolve(RECIPE, models=("mine/m", model), **change)
    assert f"{key} needs the prices of {model}" in fault_of(source(recipe))
    assert plan_of(source(evolve(recipe, models=("mine/m",)))).items


@pytest.mark.parametrize(
    ("grants", "refused"),
    [
        (None, False),
        ({}, True),
        ({"build": ("mine/*",)}, False),
        ({"fix": ("mine/m",)}, False),
        ({"*": ("mine/m",)}, False),
        ({"build": ("mine/other",), "plan": ("*",)}, True),
    ],
)
def test_a_model_that_is_not_granted_refuses_the_item(
    grants: dict[str, tuple[str, ...]] | None, refused: bool
) -> None:
    (item,) = plan_of(source(), config=evolve(CONFIG, grants=grants)).items
    assert (item.refusal is not None) == refused
    assert not refused or "model mine/m is not granted to agent 'build'" in str(item.refusal)


def test_fallback_and_small_models_need_grants_too() -> None:
    config = evolve(CONFIG, grants={"build": ("mine/m",)})
    fallback = evolve(RECIPE, models=("mine/m", "anthropic/x"))
    small = evolve(RECIPE, small_model="anthropic/x")
    for recipe in (fallback, small):
        (item,) = plan_of(source(recipe), config=config).items
        assert "anthropic/x is not granted" in str(item.refusal)


def test_several_repositories_are_named_in_the_keys() -> None:
    lib = RepoBase(Path("/work/lib"), "main", None)
    plan = plan_of(source(matrix={"a": [1]}), repos=(BASE, lib))
    assert [item.key for item in plan.items] == ["fix/a=1@app", "fix/a=1@lib"]
    assert plan.items[0].digest != plan.items[1].digest


def test_each_recipe_may_have_repositories_of_its_own() -> None:
    other = source(evolve(RECIPE, name="other"))
    plan = build_plan(
        [(source(), {}), (other, {})],
        config=CONFIG,
        equipment=lambda _: Equipment(agents=load_agents()),
        repos=lambda one: (evolve(BASE, ref=one.name),),
        cli=Overrides(),
        default_rules=DEFAULT,
        files=NO_FILES,
    )
    assert [(item.key, item.ref) for item in plan.items] == [("fix", "fix"), ("other", "other")]


def test_items_of_a_glob_come_from_the_repository() -> None:
    files = MemoryFiles(("packages/core/a.py", "packages/cli/a.py"))
    plan = plan_of(source(matrix={"p": {"glob": "packages/*"}}), files=files)
    assert [item.key for item in plan.items] == ["fix/p=packages/cli", "fix/p=packages/core"]


def test_an_empty_matrix_is_an_empty_plan_and_a_warning() -> None:
    plan = plan_of(source(matrix={"a": []}), source(matrix={"a": [1]}))
    assert len(plan.items) == 1
    assert [w.severity for w in plan.warnings] == ["warning"]
    assert "`matrix` gives no session" in plan.warnings[0].message


def test_all_faults_of_all_recipes_are_told_at_once_and_only_once() -> None:
    undefined = source(evolve(RECIPE, prompt="$nope"), {"n": list(range(50))})
    required = source(evolve(RECIPE, name="b", file=Path("/r/b.yaml")), need=None)
    unknown = source(
        evolve(RECIPE, name="c", file=Path("/r/c.yaml"), models=("q/x",)), {"n": [1, 2]}
    )
    told = fault_of(undefined, required, unknown).splitlines()
    assert len(told) == 3
    assert "'nope' is undefined" in told[0]
    assert "parameter 'need'" in told[1]
    assert "unknown provider `q`" in told[2]


def test_two_items_with_one_key_are_refused() -> None:
    assert "more than one item has the key 'fix': give each" in fault_of(source(), source())
    rows = source(matrix={"a": ["1"], "include": [{"a": 1}]})
    assert "/r/fix.yaml:9:1: more than one item has the key 'fix/a=1'" in fault_of(rows)


def test_warnings_of_config_and_recipes_are_in_the_plan() -> None:
    one = Fault(Path("/c"), 1, 1, "odd", "warning")
    two = Fault(Path("/r"), 2, 1, "unused", "warning")
    plan = plan_of(evolve(source(), warnings=(two,)), config=evolve(CONFIG, warnings=(one,)))
    assert plan.warnings == (one, two)


def test_only_keeps_the_items_that_match() -> None:
    many = source(matrix={"p": ["core", "cli", "web"]})
    cli = Overrides(only=("*=c*", "fix/p=web"))
    assert len(plan_of(many, cli=cli).items) == 3
    (item,) = plan_of(many, cli=Overrides(only=("*=w*",))).items
    assert item.key == "fix/p=web"
    with pytest.raises(UsageError, match=r"--only fix/p=wbe: matches no item; did you mean"):
        plan_of(many, cli=Overrides(only=("fix/p=wbe",)))


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c"]),
        st.lists(st.text(max_size=5) | st.integers() | st.booleans(), max_size=3),
        min_size=1,
    )
)
def test_keys_and_folders_are_unique_whatever_the_values(matrix: JsonObject) -> None:
    try:
        items = plan_of(source(matrix=matrix)).items
    except FaultyInput as error:
        told = [fault.message for fault in error.faults]
        assert [text for text in told if "twice" not in text and "more than one" not in text] == []
        return
    assert len({item.key for item in items}) == len(items)
    assert len({item.folder for item in items}) == len(items)
    assert all("/" not in item.folder for item in items)


def test_ten_thousand_items_are_planned_in_three_seconds() -> None:
    checks = tuple(Check(name=f"c{n}", run="true") for n in range(3))
    rules = tuple(Rule("bash", f"cmd{n} *", "allow", "recipe:x:1") for n in range(20))
    recipe = evolve(RECIPE, prompt="$a $b " + "x" * 2000, checks=checks, permissions=rules)
    many = source(
        recipe, {"a": list(range(100)), "b": list(range(100)), "exclude": [{"a": -1}] * 5}
    )
    started = time.process_time()
    plan = plan_of(many)
    assert time.process_time() - started < 3
    assert len(plan.items) == 10_000


def test_the_plan_as_json_says_what_would_run() -> None:
    recipe = evolve(
        RECIPE,
        limits=Limits(cost_usd=Decimal("0.50")),
        checks=(Check(name="tests", run="pytest"),),
        sandbox=SandboxWish(network=("a.example",), need=("net-none",)),
        models=("mine/m", "listed/big"),
    )
    (item,) = plan_as_json(plan_of(source(recipe)))["items"]
    assert (item["key"], item["model"], item["agent"]) == ("fix", "mine/m", "build")
    assert item["fallback_models"] == ["listed/big"]
    assert item["limits"]["cost_usd"] == 0.5
    assert item["forecast"] == {
        "basis": "limit",
        "p50_usd": None,
        "p95_usd": None,
        "limit_usd": 0.5,
    }
    assert item["permissions"] == [
        {"permission": "read", "pattern": "*", "action": "allow", "source": "default"}
    ]
    assert item["checks"] == [{"name": "tests", "run": "pytest"}]
    assert item["sandbox"]["network"] == ["a.example"]


def test_the_plan_as_text_lists_items_once_with_what_they_share() -> None:
    warning = Fault(Path("/c"), 1, 1, "odd", "warning")
    many = evolve(source(matrix={"p": ["core", "evil\x1b[2J\n\u202e"]}), warnings=(warning,))
    text = plan_as_text(plan_of(many))
    assert text.startswith("2 sessions\n")
    assert text.count("permissions (the last match wins") == 1
    assert "fix/p=core" in text
    assert "allow  read: *   [default]" in text
    assert "evil\\x1b[2J\\n\\u202e" in text
    assert "\x1b" not in text
    assert "/c:1:1: warning: odd" in text
    assert plan_as_text(Plan()) == "0 sessions\n"
