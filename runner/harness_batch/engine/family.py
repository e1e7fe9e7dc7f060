"""Parents and children as records, and the seam to the room that composes child sessions."""

from collections.abc import Mapping
from typing import Protocol

from attrs import Factory, define, frozen

from harness_batch.engine.site import Site
from harness_batch.engine.spend import Spend
from harness_batch.engine.stop import StopSignal
from harness_batch.messages import JsonObject, Turn
from harness_batch.permissions.judge import Policy
from harness_batch.plan.item import Item
from harness_batch.records import Attempt, Session
from harness_batch.tools.protocol import SessionFiles


@frozen(kw_only=True)
class Parent:
    """A session as its children see it: what they inherit, and what bounds them."""

    session_id: str
    depth: int
    item: Item
    policy: Policy
    site: Site
    spend: Spend
    stop: StopSignal


@define(kw_only=True)
class Carryover:
    """What a session keeps from one attempt to the next when its conversation goes on."""

    turns: list[Turn] = Factory(list)
    """What the model is shown, oldest first."""
    files: SessionFiles = Factory(SessionFiles)
    todos: list[JsonObject] = Factory(list)
    children: "dict[str, Child]" = Factory(dict)
    """By session id."""


@define(kw_only=True)
class Child:
    """A child session, for as long as its parent's conversation lasts."""

    session: Session
    item: Item
    """Its prompt is the newest errand."""
    policy: Policy
    spend: Spend
    carryover: Carryover = Factory(Carryover)
    running: bool = False


class ChildSessions(Protocol):
    """Plans, records and runs child sessions; the composition root's."""

    def agents(self, parent: Item) -> Mapping[str, str]:
        """Every agent that can be a child of the item's session, with its description."""
        ...

    def of_agent(self, parent: Item, agent: str, prompt: str) -> Item | str:
        """What a child with that agent is about; words on why there can be none."""
        ...

    def of_recipe(self, parent: Item, name: str, arguments: JsonObject) -> Item | str:
        """What a run of that sub-recipe is about; words on why there can be none."""
        ...

    def begin(self, item: Item, parent: Parent) -> Session:
        """A session row for a new child. Raises: StorageError."""
        ...

    async def run(self, child: Child, parent: Parent, stop: StopSignal) -> Attempt:
        """One attempt of the child, to its end; `stop` ends it early. Raises: StorageError."""
        ...


@frozen
class NoChildren:
    """`ChildSessions` where nobody can be a child."""

    def agents(self, parent: Item) -> Mapping[str, str]:
        """None."""
        del parent
        return {}

    def of_agent(self, parent: Item, agent: str, prompt: str) -> Item | str:
        """Never an item."""
        del parent, prompt
        return f"there is no agent {agent!r} that can be a subagent"

    def of_recipe(self, parent: Item, name: str, arguments: JsonObject) -> Item | str:
        """Never an item."""
        del parent, arguments
        return f"there is no sub-recipe {name!r}"

    def begin(self, item: Item, parent: Parent) -> Session:
        """Cannot happen: there is no item."""
        raise AssertionError(item, parent)

    async def run(self, child: Child, parent: Parent, stop: StopSignal) -> Attempt:
        """Cannot happen: there is no child."""
        raise AssertionError(child, parent, stop)
