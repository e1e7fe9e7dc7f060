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
from harness_batch.agents.shelf import TRUST, Shelf, Warn, markdown_files
from harness_batch.errors import Fault, FaultyInput
from harness_batch.limits import DEFAULTS
from harness_batch.messages import JsonObject
from harness_batch.rules import Rule, rules_from, unknown_permissions
from harness_batch.schema_faults import schema_faults

READING = ("read", "glob", "grep", "todo")
"""Permissions that everybody has by default."""


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


def load_agents(
    extra: Iterable[Declared] = (),
    shelves: Iterable[Shelf] = (),
    *,
    faults: list[Fault] | None = None,
    warn: Warn = lambda _: None,
) -> dict[str, Agent]:
    """All agents by name: the bundled ones, the Markdown of `shelves`, `extra` laid over them.

    A file takes the place of an agent of its name; of an agent that is there already only what
    `extra` says is changed, its rules appended. A bundled agent that only reads keeps to that
    whatever is said. A file of an untrusted shelf only adds agents, which restrict and never
    grant. What is wrong with files goes to `faults`; without it: Raises FaultyInput.
    """
    found: list[Fault] = [] if faults is None else faults
    declared = list(extra)
    agents = dict(_bundled())
    named = {one.name for one in declared}
    for shelf in shelves:
        for file in markdown_files(shelf, "agents", found):
            if not shelf.trusted and file.name in named | set(agents):
                told = f"the new definition of agent {file.name!r} is ignored: {TRUST}"
                warn(Fault(file.file, 0, 0, told, "warning"))
                continue
            try:
                agent = parse_agent(file.text, file.name, file=file.file)
            except FaultyInput as error:
                found += error.faults
                continue
            agents[file.name] = (
                _still_reading(agent, file.file, warn) if shelf.trusted
                else _restricting(agent, file.file, warn)
            )  # fmt: skip
    for one in declared:
        agents[one.name] = _laid_over(agents.get(one.name), one, warn)
    if faults is None and found:
        raise FaultyInput(found)
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
    for permission, told in unknown_permissions(parsed.head.get("permissions")):
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


def _laid_over(agent: Agent | None, declared: Declared, warn: Warn) -> Agent:
    below = agent or Agent(name=declared.name)
    added = tuple(_reading_only(declared.name, declared.rules, None, warn))
    return evolve(
        below,
        description=below.description if declared.description is None else declared.description,
        mode=declared.mode or below.mode,
        model=declared.model or below.model,
        temperature=below.temperature if declared.temperature is None else declared.temperature,
        steps=declared.steps or below.steps,
        rules=(*below.rules, *added),
        prompt=below.prompt if declared.prompt is None else declared.prompt,
    )


def _still_reading(agent: Agent, file: Path, warn: Warn) -> Agent:
    """A file in place of a bundled agent: the rules of one that only reads stay below its own."""
    bundled = _bundled().get(agent.name)
    added = tuple(_reading_only(agent.name, agent.rules, file, warn))
    return evolve(agent, rules=(*(bundled.rules if bundled else ()), *added))


def _reading_only(
    name: str, rules: Iterable[Rule], file: Path | None, warn: Warn
) -> Iterator[Rule]:
    """Of a bundled agent that only reads: the rules that leave it so; of others all."""
    bundled = _bundled().get(name)
    reads = {rule.permission for rule in bundled.rules if rule.action == "allow"} if bundled else ()
    for rule in rules:
        if rule.action == "allow" and reads and rule.permission not in reads:
            told = f"the rule '{rule}' is ignored: the bundled agent {name!r} stays read-only"
            warn(Fault(file or Path("agents"), 0, 0, told, "warning"))
        else:
            yield rule


def _restricting(agent: Agent, file: Path, warn: Warn) -> Agent:
    """An agent of an untrusted file: it grants nothing and asks for no more than the default."""
    for rule in agent.rules:
        if rule.action == "allow" and rule.permission not in READING:
            told = f"the rule '{rule}' grants nothing: {TRUST}"
            warn(Fault(file, 0, 0, told, "warning"))
    steps = agent.steps
    if steps is not None and DEFAULTS.steps is not None and steps > DEFAULTS.steps:
        told = f"{steps} steps, more than the default, is ignored: {TRUST}"
        warn(Fault(file, 0, 0, told, "warning"))
        steps = None
    return evolve(agent, steps=steps, trusted=False)
