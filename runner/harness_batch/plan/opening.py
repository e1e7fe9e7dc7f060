"""The command that a recipe's prompt calls: found, allowed to say what it says, filled in. Pure."""

from collections.abc import Mapping

from attrs import frozen

from harness_batch.agents.commands import Unfit, opening
from harness_batch.agents.record import Agent, Command, Equipment, OpeningPart
from harness_batch.plan.choice import Wrong
from harness_batch.recipe.record import Recipe
from harness_batch.words import nearest

BUNDLED = ("build", "explore", "plan", "review")
"""Agents that grant nothing, whoever names them."""


@frozen
class Call:
    """The command that a prompt calls, and the prompt taken apart; nothing when it calls none."""

    command: Command | None = None
    parts: tuple[OpeningPart, ...] = ()


def call_of(recipe: Recipe, equipment: Equipment) -> Call | Wrong:
    """The recipe's call of a command."""
    if recipe.command is None:
        return Call()
    command = equipment.commands.get(recipe.command)
    if command is None:
        known = ", ".join(f"/{name}" for name in equipment.commands) or "none"
        told = f"unknown command /{recipe.command}{nearest(recipe.command, equipment.commands)}"
        return Wrong(
            f"{told} (known: {known}; a repository's commands count once they are committed)",
            "prompt",
        )
    granting = _grants(equipment.agents, command.agent)
    if not command.trusted and recipe.agent is None and granting:
        return Wrong(
            f"the repository's command /{command.name} names the agent {command.agent!r}, which"
            " is yours: say `agent:` in the recipe, or --trust-repo",
            "prompt",
        )
    arguments = recipe.prompt.lstrip().removeprefix(f"/{command.name}")
    found = opening(command, arguments)
    return Wrong(found.reason, "prompt") if isinstance(found, Unfit) else Call(command, found)


def _grants(agents: Mapping[str, Agent], name: str | None) -> bool:
    agent = agents.get(name or "build")
    return agent is not None and agent.trusted and agent.name not in BUNDLED
