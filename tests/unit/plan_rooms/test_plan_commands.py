"""Commands and agents of a repository in the plan: found, chosen, held to what they may."""

from pathlib import Path

import pytest
from attrs import evolve

from harness_batch.agents.door import load_agents
from harness_batch.agents.equipment import equip
from harness_batch.agents.record import Agent, Equipment, Printed, Words
from harness_batch.config.record import Config, ProviderSettings
from harness_batch.errors import FaultyInput, UsageError
from harness_batch.messages import ModelRef
from harness_batch.plan.build import build_plan
from harness_batch.plan.inputs import Overrides, RepoBase
from harness_batch.plan.item import Item
from harness_batch.recipe.record import Recipe
from memory_shelf import MemoryShelf
from plan_fakes import MemoryFiles, MemorySource

PROVIDERS = {"mine": ProviderSettings(name="mine", type="openai-chat")}
CONFIG = Config(providers=PROVIDERS)
BASE = RepoBase(Path("/work/app"), "HEAD", "1" * 40)
RECIPE = Recipe(file=Path("/r/fix.yaml"), name="fix", models=("mine/m",), prompt="Do it.")
CALLING = evolve(RECIPE, prompt="/fix the tests", command="fix")
DEPLOYER = "---\npermissions: {bash: allow}\n---\nDeploy."


def kit(text: str, *, trusted: bool = True) -> Equipment:
    mine = MemoryShelf({"agents/deployer.md": DEPLOYER})
    theirs = MemoryShelf(
        {"commands/fix.md": text, "agents/narrow.md": "---\n---\nNarrow."}, trusted=trusted
    )
    return equip([mine, theirs])


def item_of(
    equipment: Equipment,
    recipe: Recipe = CALLING,
    cli: Overrides = Overrides(),  # noqa: B008
) -> Item:
    (item,) = build_plan(
        [(MemorySource(recipe=recipe), {})],
        config=CONFIG,
        equipment=lambda _: equipment,
        repos=lambda _: (BASE,),
        cli=cli,
        default_rules=(),
        files=MemoryFiles(()),
    ).items
    return item


def test_a_command_is_filled_in_and_changes_the_digest() -> None:
    one, other = item_of(kit("Fix $ARGUMENTS: !`make $1`")), item_of(kit("Mend $ARGUMENTS"))
    assert one.opening == (Words("Fix the tests: "), Printed("make the"))
    assert one.digest != other.digest
    assert item_of(kit("Fix it"), evolve(RECIPE, prompt="/fix x")).opening == ()


def test_agent_and_model_are_the_recipes_before_the_commands() -> None:
    equipment = kit("---\nagent: plan\nmodel: mine/other\n---\nFix")
    silent = evolve(CALLING, models=())
    item = item_of(equipment, silent)
    assert (item.agent.name, item.models) == ("plan", (ModelRef("mine", "other"),))
    item = item_of(equipment, evolve(CALLING, agent="review"))
    assert (item.agent.name, item.models) == ("review", (ModelRef("mine", "m"),))
    item = item_of(equipment, silent, Overrides(agent="build", model="mine/m"))
    assert (item.agent.name, item.models) == ("build", (ModelRef("mine", "m"),))


def test_an_untrusted_command_may_not_choose_an_agent_that_grants() -> None:
    text = "---\nagent: deployer\n---\nFix"
    with pytest.raises(FaultyInput, match="names the agent 'deployer', which is yours"):
        item_of(kit(text, trusted=False))
    assert item_of(kit(text)).agent.name == "deployer"
    for name in ("plan", "narrow"):
        text = f"---\nagent: {name}\n---\nFix"
        assert item_of(kit(text, trusted=False)).agent.name == name


def test_an_unknown_command_is_a_fault_that_names_a_near_one() -> None:
    recipe = evolve(RECIPE, prompt="/fxi x", command="fxi")
    with pytest.raises(FaultyInput, match=r"unknown command /fxi; did you mean `fix`\? \(known"):
        item_of(kit("Fix"), recipe)


def test_arguments_that_do_not_fit_are_a_fault() -> None:
    with pytest.raises(FaultyInput, match=r"\$2 stands in a shell command"):
        item_of(kit("!`cat $2`"), evolve(CALLING, prompt="/fix a ';id'"))


def test_an_untrusted_agents_allows_are_not_in_the_stack() -> None:
    shelf = MemoryShelf({"agents/a.md": DEPLOYER}, trusted=False)
    item = item_of(equip([shelf]), evolve(RECIPE, agent="a"))
    assert item.rules == ()
    assert [str(rule) for rule in item.agent.rules] == ["bash: *: allow"]


def test_each_repository_has_agents_of_its_own() -> None:
    other = RepoBase(BASE.path.parent / "other", "HEAD", "2" * 40)

    def equipment(base: RepoBase) -> Equipment:
        extra = {"own": Agent(name="own", prompt="x")} if base == other else {}
        return Equipment(agents={**load_agents(), **extra})

    def plan(cli: Overrides) -> None:
        build_plan(
            [(MemorySource(recipe=RECIPE), {})],
            config=CONFIG,
            equipment=equipment,
            repos=lambda _: (BASE, other),
            cli=cli,
            default_rules=(),
            files=MemoryFiles(()),
        )

    with pytest.raises(FaultyInput, match="unknown agent `own`"):
        plan(Overrides(agent="own"))
    with pytest.raises(UsageError, match="unknown agent `own2`"):
        plan(Overrides(agent="own2"))
