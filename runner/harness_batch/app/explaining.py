"""Which rule of which file decides a call that somebody has in mind; nothing is run."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from attrs import frozen

from harness_batch.config.document import read_document
from harness_batch.engine.arguments import Schemas
from harness_batch.errors import HarnessError, SandboxError, UsageError
from harness_batch.messages import JsonObject
from harness_batch.permissions.judge import Allowed, Denied, Policy, Ruling
from harness_batch.permissions.lint import unknown_permission
from harness_batch.permissions.shell import ShellPlace, asks_of
from harness_batch.plan.item import Item
from harness_batch.processes import Command, CommandEnd
from harness_batch.rules import PERMISSIONS, Ask, Rule
from harness_batch.tools.protocol import Tool, ToolContext, ToolResult
from harness_batch.tools.table import bundled_tools
from harness_batch.words import nearest

MAIN_ARGUMENT: Final = {
    "bash": "command",
    "read": "file_path",
    "write": "file_path",
    "edit": "file_path",
    "multiedit": "file_path",
    "glob": "path",
    "grep": "path",
    "webfetch": "url",
}
"""What a plain INPUT is to a tool; a JSON object gives all its arguments."""
_FILLED: Final[JsonObject] = {
    "content": "",
    "old_string": "a",
    "new_string": "b",
    "edits": [{"old_string": "a", "new_string": "b"}],
    "pattern": "*",
    "todos": [],
}
"""Arguments that rules do not look at."""


@frozen(kw_only=True)
class Explained:
    """The rules' word on a call."""

    item_key: str
    allowed: bool
    rulings: tuple[Ruling, ...]
    """What decides each thing that is asked."""
    refusal: str | None = None
    """Why the call would not work whatever the rules say."""
    message: str | None = None
    """What a denied call would be told."""


@frozen
class _NoLauncher:
    """Whoever only asks starts nothing."""

    async def run(
        self,
        command: Command,
        stdout: Callable[[bytes], None],
        stderr: Callable[[bytes], None] | None = None,
    ) -> CommandEnd:
        """Never."""
        del stdout, stderr
        raise SandboxError(f"{command} is not started to explain a rule")


def explain(item: Item, tool: str, given: str) -> Explained:
    """What decides the call in a session of the item.

    `given` is the tool's main argument, or its arguments as a JSON object.

    Raises: UsageError for a tool that there is not, or arguments that do not fit it.
    """
    policy = Policy(item.rules, item.agent.rules)
    asked = _asked(item, policy, tool, given)
    verdict = policy.judge(asked.asks)
    allowed = isinstance(verdict, Allowed) and asked.refusal is None
    return Explained(
        item_key=item.key,
        allowed=allowed,
        rulings=verdict.rulings,
        refusal=asked.refusal,
        message=verdict.message if isinstance(verdict, Denied) else None,
    )


@frozen
class _Asked:
    """What a call needs of the rules."""

    asks: Sequence[Ask]
    refusal: str | None = None


def _asked(item: Item, policy: Policy, name: str, given: str) -> _Asked:
    tools = {tool.name: tool for tool in bundled_tools()}
    if name in tools:
        return _of_tool(tools[name], item, policy, given)
    if name in {sub.name for sub in item.recipe.sub_recipes}:
        return _Asked([Ask("task", name)])
    if name in _NAMED:
        key = _NAMED[name]
        return _Asked([Ask(name, str((_json_object(given) or {key: given}).get(key, given)))])
    if name in ("memory", "lsp"):
        return _Asked([Ask(name, name)])
    if "_" in name and unknown_permission(name) is not None:
        return _Asked([Ask("mcp", name)])
    raise UsageError(f"--tool {name}: there is no such tool{nearest(name, (*tools, *PERMISSIONS))}")


_NAMED: Final = {
    "task": "agent",
    "skill": "name",
    "mcp": "tool",
    "external_directory": "path",
    "doom_loop": "tool",
}
"""What is asked for by a name alone, and the argument that holds it."""


def _of_tool(tool: Tool, item: Item, policy: Policy, given: str) -> _Asked:
    arguments = _json_object(given)
    if arguments is None:
        main = MAIN_ARGUMENT.get(tool.name)
        needed = tool.parameters.get("required", [])
        arguments = {key: value for key, value in _FILLED.items() if key in needed}
        if main is not None:
            arguments[main] = given
    if told := Schemas().faults(tool, arguments):
        raise UsageError(f"--tool {tool.name} {given!r}: {told}")
    root = Path(item.repo).resolve()
    cwd = root / item.recipe.workspace.path
    context = ToolContext(
        root=root, cwd=cwd, launcher=_NoLauncher(), outputs=root, may=policy.allows
    )
    asks = tool.asks(arguments, context)
    if not isinstance(asks, ToolResult):
        return _Asked(asks)
    if tool.name != "bash":
        return _Asked([], asks.output)
    return _Asked(asks_of(arguments["command"], ShellPlace(root, cwd, None)), asks.output)


def _json_object(text: str) -> JsonObject | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def place_of(rule: Rule) -> str:
    """Where the rule stands, as `FILE:LINE` where that can be told, else its source."""
    kind, _, rest = rule.source.partition(":")
    if kind == "recipe":
        return rest
    if kind != "config":
        return rule.source
    try:
        document = read_document(Path(rest), trusted=True)
    except HarnessError:
        return rest
    line, _ = document.place(("permissions", rule.permission, rule.pattern))
    return f"{rest}:{line}" if line else rest
