"""What is wrong with the children that sessions could start, told before anything runs.

A model of an agent that a rule lets a session start must be known and, where a limit of cost
stands, priced. What depends on a model's own arguments can only be told when the child is started.
"""

from collections.abc import Iterable, Iterator

from attrs import evolve

from harness_batch.errors import Fault, FaultyInput
from harness_batch.messages import ModelRef
from harness_batch.permissions.judge import Policy
from harness_batch.plan.child_items import NOT_GRANTED, ChildItems
from harness_batch.plan.choice import Wrong
from harness_batch.plan.item import Item
from harness_batch.recipe.record import SubRecipe
from harness_batch.rules import Ask


def child_faults(items: Iterable[Item], children: ChildItems) -> tuple[Fault, ...]:
    """The warnings. Raises: FaultyInput when there are errors."""
    faults = tuple(dict.fromkeys(f for item in _unlike(items) for f in _faults(item, children)))
    errors = [fault for fault in faults if fault.severity == "error"]
    if errors:
        raise FaultyInput(errors)
    return faults


def child_models(items: Iterable[Item], children: ChildItems) -> Iterator[ModelRef]:
    """Models that children may use beside those of their parents, as far as it can be told."""
    for item in _unlike(items):
        for name, child in _startable(item, children):
            del name
            if isinstance(child, Item):
                yield from child.models


def _unlike(items: Iterable[Item]) -> Iterator[Item]:
    """Rows of a matrix are alike in what children take from them."""
    seen: set[object] = set()
    for item in items:
        mark = (item.recipe.file, item.agent.name, item.models, item.rules, item.limits)
        if mark not in seen:
            seen.add(mark)
            yield item


def _faults(item: Item, children: ChildItems) -> Iterator[Fault]:
    policy = Policy(item.rules, item.agent.rules)
    for sub in item.recipe.sub_recipes:
        if not policy.allows(Ask("task", sub.name)):
            told = f"sub-recipe `{sub.name}` cannot be started: no rule allows it; under"
            line = f"{told} `permissions` write `task: {{{sub.name}: allow}}`"
            yield Fault(item.recipe.file, 0, 0, line, "warning")
    for name, child in _startable(item, children):
        if isinstance(child, Wrong):
            fault = Fault(item.recipe.file, 0, 0, f"as a child, {name}: {child.message}")
            granted = child.key != NOT_GRANTED
            yield fault if granted else evolve(fault, severity="warning")


def _startable(item: Item, children: ChildItems) -> Iterator[tuple[str, Item | Wrong]]:
    policy = Policy(item.rules, item.agent.rules)
    for name in children.agents(item):
        if policy.allows(Ask("task", name)):
            yield f"agent `{name}`", children.of_agent(item, name, "-")
    for sub in item.recipe.sub_recipes:
        if policy.allows(Ask("task", sub.name)) and not _needs_arguments(sub):
            yield f"sub-recipe `{sub.name}`", children.of_recipe(item, sub, {})


def _needs_arguments(sub: SubRecipe) -> bool:
    return bool(sub.parameters["required"])
