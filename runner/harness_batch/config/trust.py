"""What a repository's own configuration may say when nobody has vouched for it: it only tightens.

Pull requests can change these files. So they never widen permissions, name providers, start
programs, choose where things are written, read files outside, or raise a budget.
"""

from collections.abc import Callable, Collection
from pathlib import PurePosixPath
from typing import Any

from attrs import define, field

from harness_batch.config.document import Document, Steps
from harness_batch.config.expansion import references
from harness_batch.errors import Fault
from harness_batch.limits import DEFAULTS

BARRED = ("provider", "mcp", "lsp", "memory", "grants", "history", "sandbox", "env")
"""Keys of which nothing is taken from a repository."""
RUN_OPTIONS = (
    "deny",
    "junit_dialect",
    "max_cost",
    "max_failures",
    "max_time",
    "progress",
)
"""Options of `run` that a repository may set: none widens, writes, chooses what runs, or replaces
a default that is lower."""
BUNDLED_AGENTS = ("build", "explore", "plan", "review")
"""Agents that a repository may not redefine: that could undo their restrictions."""


@define
class Tightening:
    """One untrusted document, reduced to what it may say, and a warning for each thing left out."""

    document: Document
    taken_agents: Collection[str]
    """Agents that the user's own files define."""
    warnings: list[Fault] = field(factory=list)

    def without_barred_keys(self) -> dict[str, Any]:
        """The tree before it is checked against the schema."""
        return self._kept(self.document.body, (), lambda key: key not in BARRED)

    def body(self, checked: dict[str, Any]) -> dict[str, Any]:
        """The rest, once `checked` is known to follow the schema."""
        body = dict(checked)
        if "run" in body:
            body["run"] = self._kept(body["run"], ("run",), lambda key: key in RUN_OPTIONS)
        if "permissions" in body:
            body["permissions"] = self._denials(body["permissions"], ("permissions",))
        if "instructions" in body:
            body["instructions"] = self._inside(body["instructions"])
        if "agents" in body:
            body["agents"] = self._agents(body["agents"])
        for path in references(body):
            self._warn(path, "{env:...} and {file:...} are not expanded here")
        return body

    def _kept(
        self, values: dict[str, Any], path: Steps, allowed: Callable[[str], bool]
    ) -> dict[str, Any]:
        for key in values:
            if not allowed(key):
                self._ignore((*path, key), repr(".".join(map(str, (*path, key)))))
        return {key: value for key, value in values.items() if allowed(key)}

    def _denials(self, permissions: dict[str, Any], path: Steps) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for permission, declared in permissions.items():
            place = (*path, permission)
            patterns = {"*": declared} if isinstance(declared, str) else declared
            for pattern, action in patterns.items():
                if action == "allow":
                    self._ignore((*place, pattern), f"the rule '{permission}: {pattern}: allow'")
                else:
                    kept.setdefault(permission, {})[pattern] = action
        return kept

    def _inside(self, globs: list[str]) -> list[str]:
        kept = []
        for index, glob in enumerate(globs):
            path = PurePosixPath(glob.replace("\\", "/"))
            if path.is_absolute() or ".." in path.parts or glob.startswith("~"):
                self._ignore(("instructions", index), f"the instruction file {glob!r} outside")
            else:
                kept.append(glob)
        return kept

    def _agents(self, agents: dict[str, Any]) -> dict[str, Any]:
        kept = {}
        for name, agent in agents.items():
            path = ("agents", name)
            if name in BUNDLED_AGENTS or name in self.taken_agents:
                self._ignore(path, f"the new definition of agent {name!r}")
                continue
            rules = self._denials(agent.get("permissions", {}), (*path, "permissions"))
            kept[name] = {**agent, "permissions": rules}
            if agent.get("steps", 0) > (DEFAULTS.steps or 0):
                self._ignore((*path, "steps"), f"{agent['steps']} steps, more than the default,")
                del kept[name]["steps"]
        return kept

    def _ignore(self, path: Steps, what: str) -> None:
        self._warn(path, f"{what} is ignored")

    def _warn(self, path: Steps, told: str) -> None:
        why = "a repository's configuration may only tighten (--trust-repo accepts all of it)"
        self.warnings.append(self.document.warning(path, f"{told}: {why}"))
