"""What recipes may say and this version does not do: one table, a refusal by name for each line.

A capability that arrives takes its line away, and nothing else.
"""

from collections.abc import Callable, Iterator

from harness_batch.errors import Fault
from harness_batch.messages import JsonObject
from harness_batch.recipe.source_map import Json, SourceMap, Trail


def _always(_value: Json) -> bool:
    return True


_REFUSED: tuple[tuple[Trail, Callable[[Json], bool], str], ...] = (
    (("team",), _always, "`team`"),
    (("protocol",), lambda value: value == "tags", "`protocol: tags`"),
    (("cache",), _always, "`cache`"),
)
"""Path of the value, when it counts, what it is called."""

SERVED = {"builtin": frozenset({"developer", "todo"}), "platform": frozenset({"developer", "todo"})}
"""Extensions by type whose tools the runner has itself."""


def served(extension: JsonObject) -> bool:
    """Whether the runner has the extension's tools."""
    return extension["name"] in SERVED.get(extension["type"], frozenset())


def refusals(document: JsonObject, source: SourceMap) -> Iterator[Fault]:
    """A fault for everything that is not supported; a warning where the recipe can do without."""
    for trail, counts, name in _REFUSED:
        found, value = _looked_up(document, trail)
        if found and counts(value):
            yield source.key_fault(trail, f"{name} is not supported by this version")
    for at, extension in enumerate(document.get("extensions", ())):
        yield from _extension(extension, ("extensions", at), source)


def _looked_up(document: JsonObject, trail: Trail) -> tuple[bool, Json]:
    value: Json = document
    for step in trail:
        if not isinstance(value, dict) or step not in value:
            return False, None
        value = value[step]
    return True, value


def _extension(extension: JsonObject, trail: Trail, source: SourceMap) -> Iterator[Fault]:
    name = f"the {extension['type']} extension `{extension['name']}`"
    if served(extension):
        if "available_tools" in extension:
            message = f"{name} brings all its tools; permissions say which may run"
            yield source.key_fault((*trail, "available_tools"), message, "warning")
    elif extension.get("optional", False):
        message = f"{name} is not supported by this version and is left out"
        yield source.fault(trail, message, "warning")
    else:
        message = f"{name} is not supported by this version (`optional: true` goes on without it)"
        yield source.fault(trail, message)
