"""The words of permissions: a rule as it was declared, and what a tool asks for."""

from collections.abc import Iterable, Iterator
from typing import Literal

from attrs import frozen

from harness_batch.messages import JsonObject
from harness_batch.words import nearest

Action = Literal["allow", "deny", "ask"]

PERMISSIONS = (
    "read",
    "edit",
    "bash",
    "glob",
    "grep",
    "todo",
    "webfetch",
    "task",
    "skill",
    "memory",
    "lsp",
    "mcp",
    "external_directory",
    "doom_loop",
)
"""Every permission name that a tool asks for."""


@frozen
class Rule:
    """`permission` and `pattern` may hold wildcards. Nobody answers an ask: it denies."""

    permission: str
    pattern: str
    action: Action
    source: str
    """`default`, `config:FILE`, `agent:NAME`, `recipe:FILE:LINE`, `cli`."""

    def __str__(self) -> str:
        return f"{self.permission}: {self.pattern}: {self.action}"


@frozen
class Ask:
    """One thing a tool call needs. A call runs only when every one of its asks is allowed."""

    permission: str
    pattern: str
    undecidable: str | None = None
    """Why the pattern cannot be told in advance; then only a rule for exactly `*` allows."""
    options: tuple[str, ...] = ()
    """Options that execute or write; the deciding rule must name each, or be exactly `*`."""
    passing: bool = False
    """It does nothing by itself (`timeout 5` before a command that is asked for beside it, a `cd`
    inside the workspace): no rule need allow it, but a deny that names it holds."""


def rules_from(declared: JsonObject, source: str) -> tuple[Rule, ...]:
    """Rules in written order from `{permission: action}` or `{permission: {pattern: action}}`."""
    return tuple(_rules(declared, source))


def _rules(declared: JsonObject, source: str) -> Iterable[Rule]:
    for permission, value in declared.items():
        patterns: JsonObject = {"*": value} if isinstance(value, str) else value
        for pattern, action in patterns.items():
            yield Rule(permission, pattern, action, source)


def unknown_permissions(declared: object) -> Iterator[tuple[str, str]]:
    """Names without wildcards that no tool asks for, each with what to tell about it."""
    for name in declared if isinstance(declared, dict) else ():
        if name not in PERMISSIONS and not set(name) & {"*", "?"}:
            yield name, f"unknown permission `{name}`{nearest(name, PERMISSIONS)}"
