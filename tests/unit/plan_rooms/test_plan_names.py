"""Keys, folders, repository names, digests."""

import re
from decimal import Decimal
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_batch.agents.record import Agent
from harness_batch.config.record import Config, ProviderSettings
from harness_batch.limits import Limits
from harness_batch.messages import ModelRef
from harness_batch.plan.digest import Digester, script_name
from harness_batch.plan.item import Item
from harness_batch.plan.keys import folder_names, item_key, repo_names
from harness_batch.recipe.record import Check, Expectations, Recipe, WorkspaceWish
from harness_batch.rules import Rule


def test_a_key_is_the_recipe_and_its_values() -> None:
    assert item_key("fix", {}, None) == "fix"
    assert item_key("fix", {}, "app") == "fix@app"
    row = {"package": "core", "n": 0, "x": False, "f": 1.5}
    assert item_key("fix", row, None) == "fix/package=core,n=0,x=false,f=1.5"
    assert item_key("fix", {"a": ""}, "app") == "fix/a=@app"


def test_a_folder_is_the_key_when_that_is_one_segment_of_plain_letters() -> None:
    assert folder_names(["fix-lint@app"]) == {"fix-lint@app": "fix-lint@app"}
    (folder,) = folder_names(["fix/package=a b"]).values()
    assert re.fullmatch(r"fix_package=a_b-[0-9a-f]{8}", folder)


@settings(deadline=None)
@given(st.lists(st.text(min_size=1, max_size=400), unique=True, max_size=20))
def test_folders_are_one_path_segment_and_differ(keys: list[str]) -> None:
    folders = folder_names(keys)
    assert len(set(folders.values())) == len(keys)
    for folder in folders.values():
        assert re.fullmatch(r"[A-Za-z0-9._=,@-]{1,240}", folder)
        assert folder not in {".", ".."}


def test_folders_whose_short_hashes_clash_get_long_ones() -> None:
    folders = folder_names(
        [f"é{chr(0x100 + n % 5000)}{chr(0x100 + n // 5000)}" for n in range(20_000)]
    )
    assert len(set(folders.values())) == 20_000


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["/a/app"], ("app",)),
        (["/a/app", "/b/lib.git"], ("app", "lib")),
        (["/a/app", "/b/app"], ("a-app", "b-app")),
        (["/x/a/app", "/y/a/app", "/z/lib"], ("x-a-app", "y-a-app", "lib")),
        (["/a/my app", "/"], ("my_app", "root")),
        (["/a/app", "/a/app"], ("a-app-1", "a-app-2")),
    ],
)
def test_repositories_are_named_by_their_folders(
    paths: list[str], expected: tuple[str, ...]
) -> None:
    assert repo_names([Path(path) for path in paths]) == expected


RECIPE = Recipe(
    file=Path("/here/x.yaml"),
    name="x",
    prompt="Do it.",
    response_schema={"type": "object", "properties": {"a": {}, "b": {}}},
    checks=(Check(name="t", run="pytest"),),
)
WHOLE = Item(
    key="do",
    folder="do",
    digest="",
    repo="/r",
    ref="HEAD",
    recipe=RECIPE,
    params={"p": 1, "q": "x"},
    matrix={"m": False},
    agent=Agent(name="build", prompt="You build."),
    models=(ModelRef("anthropic", "a"), ModelRef("openai", "b")),
    rules=(Rule("bash", "*", "deny", "default"), Rule("bash", "ls", "allow", "recipe:x:3")),
    limits=Limits(steps=50, output_tokens=8000, seconds=1800),
    base_sha="1" * 40,
)
CONFIG = Config(
    providers={
        "anthropic": ProviderSettings(name="anthropic", type="anthropic"),
        "openai": ProviderSettings(name="openai", type="openai-chat"),
    },
    instructions=("style.md",),
)


def item_digest(item: Item, config: Config = CONFIG) -> str:
    return Digester(config).digest(item)


@pytest.mark.parametrize(
    "changed",
    [
        evolve(WHOLE, recipe=evolve(RECIPE, prompt="Do it!")),
        evolve(WHOLE, recipe=evolve(RECIPE, instructions="Well.")),
        evolve(WHOLE, recipe=evolve(RECIPE, checks=())),
        evolve(WHOLE, recipe=evolve(RECIPE, temperature=0.5)),
        evolve(WHOLE, recipe=evolve(RECIPE, response_schema={"type": "object"})),
        evolve(WHOLE, recipe=evolve(RECIPE, workspace=WorkspaceWish(path="sub"))),
        evolve(WHOLE, recipe=evolve(RECIPE, expect=Expectations(max_cost_usd=Decimal(1)))),
        evolve(WHOLE, recipe=evolve(RECIPE, env=("CI",))),
        evolve(WHOLE, params={"p": 2, "q": "x"}),
        evolve(WHOLE, params={"p": True, "q": "x"}),
        evolve(WHOLE, matrix={"m": 0}),
        evolve(WHOLE, agent=evolve(WHOLE.agent, prompt="You plan.")),
        evolve(WHOLE, agent=evolve(WHOLE.agent, temperature=1.0)),
        evolve(WHOLE, models=WHOLE.models[::-1]),
        evolve(WHOLE, small_model=ModelRef("openai", "b")),
        evolve(WHOLE, rules=WHOLE.rules[::-1]),
        evolve(WHOLE, rules=WHOLE.rules[:1]),
        evolve(WHOLE, limits=evolve(WHOLE.limits, steps=51)),
        evolve(WHOLE, limits=evolve(WHOLE.limits, output_tokens=1)),
        evolve(WHOLE, base_sha=None),
    ],
)
def test_each_ingredient_changes_the_digest(changed: Item) -> None:
    assert item_digest(changed) != item_digest(WHOLE)


@pytest.mark.parametrize(
    "alike",
    [
        evolve(WHOLE, params={"q": "x", "p": 1}),
        evolve(WHOLE, recipe=evolve(RECIPE, file=Path("/there/x.yaml"))),
        evolve(WHOLE, recipe=evolve(RECIPE, workspace=WorkspaceWish(ref="main", repo="/x"))),
        evolve(WHOLE, recipe=evolve(RECIPE, limits=Limits(cost_usd=Decimal(1)))),
        evolve(
            WHOLE,
            recipe=evolve(
                RECIPE, response_schema={"properties": {"b": {}, "a": {}}, "type": "object"}
            ),
        ),
        evolve(WHOLE, rules=tuple(evolve(rule, source="elsewhere") for rule in WHOLE.rules)),
        evolve(WHOLE, limits=evolve(WHOLE.limits, seconds=1, cost_usd=Decimal(1), tokens=5)),
    ],
)
def test_what_does_not_change_the_answer_keeps_the_digest(alike: Item) -> None:
    assert item_digest(alike) == item_digest(WHOLE)
    assert re.fullmatch("[0-9a-f]{32}", item_digest(WHOLE))


def test_instruction_files_of_the_configuration_change_the_digest() -> None:
    assert item_digest(WHOLE, evolve(CONFIG, instructions=())) != item_digest(WHOLE)


def test_equal_amounts_of_money_are_equal_in_the_digest() -> None:
    def with_cost(text: str) -> str:
        wish = Expectations(max_cost_usd=Decimal(text))
        return item_digest(evolve(WHOLE, recipe=evolve(RECIPE, expect=wish)))

    assert with_cost("2.00") == with_cost("2") != with_cost("20")


PLAIN = st.text(max_size=6) | st.integers() | st.booleans()


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=4), PLAIN, max_size=6), st.randoms())
def test_the_digest_does_not_depend_on_the_order_of_keys(
    params: dict[str, object], random: "object"
) -> None:
    keys = list(params)
    random.shuffle(keys)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    shuffled = {key: params[key] for key in keys}
    one, two = evolve(WHOLE, params=params), evolve(WHOLE, params=shuffled)
    assert item_digest(one) == item_digest(two)


def test_a_script_is_known_by_its_content(tmp_path: Path) -> None:
    one, two = tmp_path / "s.yaml", tmp_path / "sub" / "s.yaml"
    two.parent.mkdir()
    one.write_text("a")
    two.write_text("a")
    assert script_name(str(one)) == script_name(str(two))
    two.write_text("b")
    assert script_name(str(one)) != script_name(str(two))
    assert script_name(str(tmp_path / "gone.yaml")) == "gone.yaml"
