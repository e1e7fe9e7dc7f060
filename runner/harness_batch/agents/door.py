"""The agents door: bundled Markdown files, and what the configuration adds or changes."""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal, Protocol

from attrs import evolve

from harness_batch.agents.front_matter import FrontMatter, split
from harness_batch.agents.record import Agent
from harness_batch.errors import Fault, FaultyInput
from harness_batch.messages import JsonObject
from harness_batch.rules import PERMISSIONS, Rule, rules_from
from harness_batch.schema_faults import nearest, schema_faults


class Declared(Protocol):
    """An agent as the configuration declares it; None was not said."""

    @property
    def name(self) -> str:
        """Key of the table."""
        ...

    @property
    def description(self) -> str | None:
        """One line for people and for a delegating model."""
        ...

    @property
    def mode(self) -> Literal["primary", "subagent", "all"] | None:
        """Who may start it."""
        ...

    @property
    def model(self) -> str | None:
        """`PROVIDER/MODEL`."""
        ...

    @property
    def temperature(self) -> float | None:
        """Sampling temperature."""
        ...

    @property
    def steps(self) -> int | None:
        """Limit of model replies."""
        ...

    @property
    def rules(self) -> tuple[Rule, ...]:
        """With source `agent:NAME`."""
        ...

    @property
    def prompt(self) -> str | None:
        """Markdown for the system prompt."""
        ...


def load_agents(extra: Iterable[Declared] = ()) -> dict[str, Agent]:
    """All agents by name: the bundled ones, and `extra` laid over them in order.

    Of an agent that is there already only what `extra` says is changed; its rules are appended.
    """
    agents = dict(_bundled())
    for declared in extra:
        agents[declared.name] = _laid_over(agents.get(declared.name), declared)
    return agents


def parse_agent(text: str, name: str, *, file: Path | None = None) -> Agent:
    """An agent from Markdown with front matter. Raises: FaultyInput with all faults at once."""
    place = file or Path(f"{name}.md")
    parsed = split(text, place)
    if faults := tuple(_faults(parsed, place)):
        raise FaultyInput(faults)
    head = dict(parsed.head)
    rules = rules_from(head.pop("permissions", {}), f"agent:{name}")
    return Agent(name=name, **head, rules=rules, prompt=parsed.body)


def agent_schema() -> JsonObject:
    """JSON Schema of the front matter."""
    text = files("harness_batch.agents").joinpath("schema.json").read_text(encoding="utf-8")
    schema: JsonObject = json.loads(text)
    return schema


def _faults(parsed: FrontMatter, file: Path) -> Iterator[Fault]:
    yield from schema_faults(parsed.head, agent_schema(), file=file, place=parsed.place)
    permissions = parsed.head.get("permissions")
    for permission in permissions if isinstance(permissions, dict) else ():
        if permission not in PERMISSIONS and not set(permission) & {"*", "?"}:
            told = f"unknown permission {permission!r}{nearest(permission, PERMISSIONS)}"
            yield Fault(file, *parsed.place(("permissions", permission)), told)
    if not parsed.body:
        yield Fault(file, 0, 0, "has no prompt below its head")


@cache
def _bundled() -> dict[str, Agent]:
    folder = files("harness_batch.agents").joinpath("bundled")
    texts = {
        entry.name.removesuffix(".md"): entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".md")
    }
    return {name: parse_agent(texts[name], name) for name in sorted(texts)}


def _laid_over(agent: Agent | None, declared: Declared) -> Agent:
    below = agent or Agent(name=declared.name)
    return evolve(
        below,
        description=below.description if declared.description is None else declared.description,
        mode=declared.mode or below.mode,
        model=declared.model or below.model,
        temperature=below.temperature if declared.temperature is None else declared.temperature,
        steps=declared.steps or below.steps,
        rules=(*below.rules, *declared.rules),
        prompt=below.prompt if declared.prompt is None else declared.prompt,
    )
