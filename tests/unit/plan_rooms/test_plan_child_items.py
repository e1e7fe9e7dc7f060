"""What a child is about: its rules, models and limits, derived from its parent's item."""

from decimal import Decimal
from pathlib import Path
from typing import Any

from attrs import evolve

from harness_batch.agents.record import Agent, Equipment
from harness_batch.config.record import Config, ModelInfo, Prices, ProviderSettings
from harness_batch.limits import Limits
from harness_batch.messages import ModelRef
from harness_batch.plan.child_items import NOT_GRANTED, ChildItems
from harness_batch.plan.choice import Chooser, Wrong
from harness_batch.plan.inputs import Overrides
from harness_batch.plan.item import Item
from harness_batch.recipe.record import Check, Recipe, RetryRule, SubRecipe
from harness_batch.rules import Rule
from plan_fakes import MemorySource

PRICED = ModelInfo(prices=Prices(input=Decimal(1), output=Decimal(2)))
PROVIDER = ProviderSettings(
    name="mine", type="openai-chat", models={"big": PRICED, "small": PRICED, "free": ModelInfo()}
)
CONFIG = Config(providers={"mine": PROVIDER})
DEFAULT = Rule("read", "*", "allow", "default")
CONFIGURED = Rule("bash", "ls", "allow", "config:c")
LEAD = Rule("edit", "*", "deny", "agent:lead")
RECIPE = Rule("edit", "src/**", "allow", "recipe:r:3")
CLI = Rule("webfetch", "*", "deny", "cli")
HELPER = Rule("grep", "*", "deny", "agent:helper")
AGENTS = {
    "lead": Agent(name="lead", rules=(LEAD,), mode="primary"),
    "helper": Agent(
        name="helper", rules=(HELPER,), mode="subagent", model="mine/small", steps=7, prompt="Help."
    ),
    "build": Agent(name="build"),
    "theirs": Agent(name="theirs", rules=(Rule("bash", "*", "allow", "a"),), trusted=False),
    "lost": Agent(name="lost", model="nobody/x"),
    "unpriced": Agent(name="unpriced", model="mine/free"),
}  # fmt: skip
PARENT = Item(
    key="r",
    folder="r",
    digest="0",
    recipe=Recipe(
        file=Path("/r/r.yaml"),
        name="r",
        prompt="Lead.",
        instructions="Lead well.",
        checks=(Check(name="c", run="true"),),
        response_schema={"type": "object"},
    ),
    params={"x": 1},
    matrix={"y": 2},
    agent=AGENTS["lead"],
    models=(ModelRef("mine", "big"),),
    rules=(DEFAULT, CONFIGURED, LEAD, RECIPE, CLI),
    limits=Limits(steps=50, cost_usd=Decimal(1), seconds=60),
    repo="/repo",
    ref="HEAD",
    base_sha="1" * 40,
    equipment=Equipment(agents=AGENTS),
)


def items(config: Config = CONFIG, **cli: Any) -> ChildItems:
    return ChildItems(chooser=Chooser(config=config, agents={}, cli=Overrides(**cli)))


def child(name: str, parent: Item = PARENT, made: ChildItems | None = None) -> Item:
    found = (made or items()).of_agent(parent, name, "Look.")
    assert isinstance(found, Item), found
    return found


def wrong(found: Item | Wrong) -> Wrong:
    assert isinstance(found, Wrong)
    return found


def sub(recipe: Recipe, **values: Any) -> SubRecipe:
    return SubRecipe(
        name="lint",
        description="",
        values=values,
        parameters={"required": []},
        content="0",
        source=MemorySource(recipe=recipe, defaults={"what": None}),  # type: ignore[arg-type] # as the door's, but for its content
    )


def test_only_agents_that_do_not_lead_can_be_children() -> None:
    assert set(items().agents(PARENT)) == {"helper", "build", "theirs", "lost", "unpriced"}


def test_the_childs_agent_takes_the_parents_place_in_the_stack() -> None:
    assert child("helper").rules == (DEFAULT, CONFIGURED, HELPER, RECIPE, CLI)
    assert child("build").rules == (DEFAULT, CONFIGURED, RECIPE, CLI)


def test_an_agent_that_nobody_vouches_for_grants_its_child_nothing() -> None:
    theirs = child("theirs")

    assert theirs.rules == (DEFAULT, CONFIGURED, RECIPE, CLI)
    assert theirs.agent.rules


def test_of_the_recipe_only_the_frame_is_kept() -> None:
    recipe = child("helper").recipe

    assert (recipe.prompt, recipe.instructions) == ("Look.", "")
    assert (recipe.checks, recipe.response_schema, recipe.sub_recipes) == ((), None, ())


def test_the_model_is_the_agents_else_the_parents() -> None:
    assert child("helper").models == (ModelRef("mine", "small"),)
    assert child("build").models == PARENT.models
    assert child("helper", made=items(model="mine/big")).models == (ModelRef("mine", "small"),)


def test_no_limit_is_wider_than_the_parents() -> None:
    assert child("helper").limits == evolve(PARENT.limits, steps=7)
    low = evolve(PARENT, limits=Limits(steps=3))
    assert child("helper", low).limits.steps == 3


def test_models_that_are_unknown_unpriced_or_not_granted_are_told() -> None:
    assert "unknown provider `nobody`" in wrong(items().of_agent(PARENT, "lost", "")).message
    unpriced = wrong(items().of_agent(PARENT, "unpriced", ""))
    assert "limits.cost_usd" in unpriced.message
    config = evolve(CONFIG, grants={"lead": ("mine/*",)})
    refused = wrong(items(config).of_agent(PARENT, "helper", ""))
    assert refused.key == NOT_GRANTED


def test_a_sub_recipe_brings_its_own_words_rules_and_agent() -> None:
    recipe = Recipe(
        file=Path("/r/lint.yaml"),
        name="lint",
        prompt="Lint $what.",
        agent="helper",
        models=("mine/big",),
        permissions=(Rule("bash", "lint", "allow", "recipe:l:1"),),
        limits=Limits(steps=5),
    )
    found = items().of_recipe(PARENT, sub(recipe), {"what": "it"})

    assert isinstance(found, Item)
    assert (found.recipe.prompt, found.recipe.name, found.params) == (
        "Lint it.",
        "lint",
        {"what": "it"},
    )
    assert found.rules == (DEFAULT, CONFIGURED, HELPER, *recipe.permissions, CLI)
    assert (found.models, found.limits.steps) == ((ModelRef("mine", "big"),), 5)
    assert found.recipe.sandbox == PARENT.recipe.sandbox


def test_a_child_is_tried_again_by_its_own_recipe_alone_and_never_resets_the_workspace() -> None:
    rule = RetryRule(max_retries=1, checks=("make",), reset=True)
    parent = evolve(PARENT, recipe=evolve(PARENT.recipe, retry=rule))
    recipe = Recipe(file=Path("/r/l.yaml"), name="l", prompt="$what", retry=rule)
    found = items().of_recipe(PARENT, sub(recipe), {"what": "it"})

    assert isinstance(found, Item)
    assert child("helper", parent).recipe.retry is None
    assert found.recipe.retry == evolve(rule, reset=False)


def test_preset_values_win_and_what_is_missing_is_told() -> None:
    recipe = Recipe(file=Path("/r/l.yaml"), name="l", prompt="$what")
    found = items().of_recipe(PARENT, sub(recipe, what="fixed"), {"what": "mine"})

    assert isinstance(found, Item)
    assert found.recipe.prompt == "fixed"
    assert "parameter 'what'" in wrong(items().of_recipe(PARENT, sub(recipe), {})).message
