"""An agent after the door: who answers, with which prompt, under which restrictions."""

from typing import Literal

from attrs import frozen

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
