"""What a schema cannot say of a recipe: names, patterns, references and durations that hold.

Each check looks at some top-level keys, so that after rendering only those are looked at again
whose texts were templates. Before rendering a text that is a template is passed over.
"""

import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TypeAlias

import pathspec
from attrs import frozen
from jsonschema import Draft202012Validator, SchemaError
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from harness_batch.errors import Fault
from harness_batch.messages import JsonObject, ModelRef
from harness_batch.recipe.durations import seconds
from harness_batch.recipe.source_map import Json, SourceMap, Trail
from harness_batch.recipe.templates import is_template
from harness_batch.rules import PERMISSIONS
from harness_batch.words import dotted, nearest

_VARIABLE_GLOB = re.compile(r"[A-Za-z_*?][A-Za-z0-9_*?]*")


@frozen
class Subject:
    """A valid document, where its values stand, and which texts are final."""

    document: JsonObject
    source: SourceMap
    folder: Path
    settled: Callable[[str], bool]


def before_rendering(text: str) -> bool:
    """A text that is no template is final."""
    return not is_template(text)


def after_rendering(_text: str) -> bool:
    """Every text is final; braces in it come from values."""
    return True


_Check: TypeAlias = Callable[[Subject], Iterator[Fault]]


def meaning_faults(subject: Subject, keys: set[str]) -> Iterator[Fault]:
    """The faults of all checks that look at one of the top-level keys."""
    for looked_at, check in _CHECKS:
        if keys.intersection(looked_at):
            yield from check(subject)


def _task(subject: Subject) -> Iterator[Fault]:
    texts = [subject.document.get(key, "") for key in ("prompt", "instructions")]
    if not any(text.strip() for text in texts):
        yield subject.source.fault(
            (), "a recipe needs a `prompt` or `instructions` that say something"
        )


def _models(subject: Subject) -> Iterator[Fault]:
    document = subject.document
    named: list[tuple[Trail, str]] = [
        (("model", at), m) for at, m in enumerate(document.get("model", ()))
    ]
    if "small_model" in document:
        named.append((("small_model",), document["small_model"]))
    for trail, text in named:
        if not subject.settled(text):
            continue
        try:
            ref = ModelRef.parse(text)
        except ValueError:
            message = f"`{trail[0]}` must be PROVIDER/MODEL, not `{text}`"
            yield subject.source.fault(trail, message)
            continue
        if ref.provider in ("scripted", "replay") and not (subject.folder / ref.model).is_file():
            message = f"the {ref.provider} model's file `{ref.model}` is not in {subject.folder}"
            yield subject.source.fault(trail, message)


def _permissions(subject: Subject) -> Iterator[Fault]:
    for name, value in subject.document.get("permissions", {}).items():
        here: Trail = ("permissions", name)
        if not any(fnmatchcase(known, name) for known in PERMISSIONS):
            hint = nearest(name, list(PERMISSIONS)) or f"; known are {', '.join(PERMISSIONS)}"
            yield subject.source.key_fault(here, f"unknown permission `{name}`{hint}")
        for pattern in value if isinstance(value, dict) else ():
            if is_template(pattern):
                message = (
                    f"`{pattern}` is a key, and keys are not templates; `patch.allow` may be one"
                )
                yield subject.source.key_fault((*here, pattern), message)


def _durations(subject: Subject) -> Iterator[Fault]:
    document = subject.document
    found: list[tuple[Trail, Json]] = [
        (("limits", key), document["limits"][key])
        for key in ("seconds", "working_seconds")
        if key in document.get("limits", {})
    ]
    found += [
        (("checks", at, "timeout"), check["timeout"])
        for at, check in enumerate(document.get("checks", ()))
        if "timeout" in check
    ]
    for trail, value in found:
        if isinstance(value, str) and not subject.settled(value):
            continue
        try:
            seconds(value)
        except ValueError as error:
            yield subject.source.fault(trail, f"`{dotted(trail)}`: {error}")


def _check_names(subject: Subject) -> Iterator[Fault]:
    seen: set[str] = set()
    for at, check in enumerate(subject.document.get("checks", ())):
        if check["name"] in seen:
            message = f"two checks have the name `{check['name']}`"
            yield subject.source.fault(("checks", at, "name"), message)
        seen.add(check["name"])


def _retry(subject: Subject) -> Iterator[Fault]:
    retry = subject.document.get("retry")
    if retry is None or retry.get("checks"):
        return
    if not (retry.get("feedback") and subject.document.get("checks")):
        also = ", or `feedback: true` and `checks` of the recipe"
        message = f"`retry` never tries again: it needs `checks` of its own{also}"
        yield subject.source.key_fault(("retry",), message, "warning")


def _globs(subject: Subject) -> Iterator[Fault]:
    document = subject.document
    lists: list[tuple[Trail, list[str]]] = [(("context",), document.get("context", []))]
    for outer, inner in (("patch", "allow"), ("patch", "protect"), ("expect", "touches")):
        lists.append(((outer, inner), document.get(outer, {}).get(inner, [])))
    for trail, globs in lists:
        for at, glob in enumerate(globs):
            problem = _glob_problem(glob) if subject.settled(glob) else None
            if problem:
                yield subject.source.fault((*trail, at), f"`{dotted(trail)}`: `{glob}` {problem}")


def _glob_problem(glob: str) -> str | None:
    if ".." in PurePosixPath(glob).parts:
        return "leads out of the workspace"
    try:
        (pattern,) = pathspec.GitIgnoreSpec.from_lines([glob]).patterns or (None,)
    except ValueError:
        return "is no pattern"
    return "matches nothing" if pattern is None or pattern.include is None else None


def _matrix_globs(subject: Subject) -> Iterator[Fault]:
    for axis, values in subject.document.get("matrix", {}).items():
        glob = values.get("glob") if isinstance(values, dict) else None
        if axis == "include" or glob is None or not subject.settled(glob):
            continue
        if PurePosixPath(glob).is_absolute() or ".." in PurePosixPath(glob).parts:
            message = f"`matrix.{axis}.glob`: `{glob}` leads out of the repository"
            yield subject.source.fault(("matrix", axis, "glob"), message)


def _environment(subject: Subject) -> Iterator[Fault]:
    for at, name in enumerate(subject.document.get("env", ())):
        if subject.settled(name) and not _VARIABLE_GLOB.fullmatch(name):
            message = f"`env`: `{name}` is no name or glob of environment variables"
            yield subject.source.fault(("env", at), message)


def _workspace(subject: Subject) -> Iterator[Fault]:
    path = subject.document.get("workspace", {}).get("path", ".")
    outside = PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts
    if subject.settled(path) and outside:
        message = f"`workspace.path`: `{path}` leads out of the repository"
        yield subject.source.fault(("workspace", "path"), message)


def _hosts(subject: Subject) -> Iterator[Fault]:
    network = subject.document.get("sandbox", {}).get("network", ())
    for at, host in enumerate(network if isinstance(network, list) else ()):
        if subject.settled(host) and ("/" in host or any(char.isspace() for char in host)):
            message = (
                f"`sandbox.network`: `{host}` is no host; write the name without scheme and path"
            )
            yield subject.source.fault(("sandbox", "network", at), message)


def _writable(subject: Subject) -> Iterator[Fault]:
    for at, path in enumerate(subject.document.get("sandbox", {}).get("write", ())):
        parts = PurePosixPath(path).parts
        placed = path.startswith(("/", "~/")) and len(parts) > 1 and ".." not in parts
        if subject.settled(path) and not placed:
            message = (
                f"`sandbox.write`: `{path}` must be a folder's absolute path, or one below the "
                "home as `~/...`, without `..`"
            )
            yield subject.source.fault(("sandbox", "write", at), message)


def _answer_schema(subject: Subject) -> Iterator[Fault]:
    schema = subject.document.get("response", {}).get("json_schema")
    here: Trail = ("response", "json_schema")
    if schema is None:
        return
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        trail = (*here, *error.absolute_path)
        yield subject.source.fault(trail, f"`{dotted(trail)}` is no JSON Schema: {error.message}")
        return
    resolver = Registry().resolver_with_root(DRAFT202012.create_resource(schema))
    for trail, reference in _references(schema, here):
        try:
            resolver.lookup(reference)
        except (Unresolvable, ValueError):
            message = f"`{dotted(trail)}`: `{reference}` leads to nothing within the schema"
            yield subject.source.fault(trail, message)


def _references(value: Json, trail: Trail) -> Iterator[tuple[Trail, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("$ref", "$dynamicRef") and isinstance(inner, str):
                yield (*trail, key), inner
            else:
                yield from _references(inner, (*trail, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _references(inner, (*trail, at))


_CHECKS: tuple[tuple[frozenset[str], _Check], ...] = (
    (frozenset({"prompt", "instructions"}), _task),
    (frozenset({"model", "small_model"}), _models),
    (frozenset({"permissions"}), _permissions),
    (frozenset({"limits", "checks"}), _durations),
    (frozenset({"checks"}), _check_names),
    (frozenset({"retry", "checks"}), _retry),
    (frozenset({"context", "patch", "expect"}), _globs),
    (frozenset({"matrix"}), _matrix_globs),
    (frozenset({"env"}), _environment),
    (frozenset({"workspace"}), _workspace),
    (frozenset({"sandbox"}), _hosts),
    (frozenset({"sandbox"}), _writable),
    (frozenset({"response"}), _answer_schema),
)
"""Top-level keys and the check that looks at them."""
