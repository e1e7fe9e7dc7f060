"""What comes along to a session as Markdown: agents, skills and commands, after the door."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from attrs import Factory, frozen

from harness_batch.errors import Fault
from harness_batch.rules import Rule


@frozen(kw_only=True)
class Agent:
    """One agent. Where its own last matching rule denies, no other rule allows."""

    name: str
    description: str = ""
    mode: Literal["primary", "subagent", "all"] = "all"
    model: str | None = None
    temperature: float | None = None
    steps: int | None = None
    rules: tuple[Rule, ...] = ()
    prompt: str = ""
    """Markdown for the system prompt."""
    trusted: bool = True
    """False for one of a repository that nobody has vouched for: it restricts, never grants."""

    @property
    def granted(self) -> tuple[Rule, ...]:
        """Its rules as part of the stack; all of them always stand in the ceiling."""
        return self.rules if self.trusted else ()


@frozen(kw_only=True)
class Skill:
    """Instructions for one kind of work, read by the model when it needs them."""

    name: str
    description: str
    """One line."""
    body: str
    file: Path
    """Where it came from, for people."""
    files: tuple[str, ...] = ()
    """The other files of its folder, as the model can name them."""
    trusted: bool = True


@frozen(kw_only=True)
class Command:
    """A prompt that a recipe calls as `/name arguments`."""

    name: str
    template: str
    file: Path
    description: str = ""
    agent: str | None = None
    model: str | None = None
    trusted: bool = True


@frozen
class Words:
    """Text of the prompt as it stands."""

    text: str


@frozen
class Attached:
    """A file of the workspace, read when the session starts; `written` is how it was named."""

    path: str
    written: str


@frozen
class Printed:
    """What a shell command prints when the session starts, if the rules allow it."""

    script: str


OpeningPart: TypeAlias = Words | Attached | Printed


@frozen(kw_only=True)
class Equipment:
    """Everything there is for sessions on one repository."""

    agents: Mapping[str, Agent] = Factory(dict)
    skills: Mapping[str, Skill] = Factory(dict)
    commands: Mapping[str, Command] = Factory(dict)
    warnings: tuple[Fault, ...] = ()
