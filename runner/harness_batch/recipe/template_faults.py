"""Faults that a recipe's templates have before any value is known, each in its line."""

from collections.abc import Iterator

from harness_batch.errors import Fault
from harness_batch.messages import JsonObject
from harness_batch.recipe.source_map import Json, SourceMap, Trail
from harness_batch.recipe.templates import RecipeTemplates, Spot, Trouble, is_template
from harness_batch.words import dotted, nearest

UNRENDERED = frozenset({"parameters", "matrix"})
"""Parts that the variables come from, so that no template can stand there."""
_ALWAYS = frozenset({"recipe_dir"})


def template_texts(value: Json, trail: Trail = ()) -> Iterator[tuple[Trail, str]]:
    """The texts below a value that are templates, each with its path; keys are none."""
    match value:
        case str() if is_template(value):
            yield trail, value
        case dict():
            for key, inner in value.items():
                yield from template_texts(inner, (*trail, key))
        case list():
            for at, inner in enumerate(value):
                yield from template_texts(inner, (*trail, at))
        case _:
            pass


def fault_at(source: SourceMap, trail: Trail, spot: Spot, message: str) -> Fault:
    """A fault in a line of the text at the path, or of a file that the text includes."""
    if spot.file is not None:
        return Fault(spot.file, spot.line, 1, message)
    line, column = source.line_of(trail, spot.line)
    return Fault(source.file, line, column, message)


def trouble_fault(source: SourceMap, trail: Trail, trouble: Trouble) -> Fault:
    """The fault of a template that cannot be read or rendered."""
    return fault_at(source, trail, trouble.spot, trouble.message)


def axes_of(document: JsonObject) -> set[str]:
    """Names of the matrix' axes."""
    return set(document.get("matrix", {})) - {"include", "exclude"}


def name_clashes(document: JsonObject, source: SourceMap) -> Iterator[Fault]:
    """Matrix axes that are named as parameters are, and excluded axes that do not exist."""
    axes = axes_of(document)
    parameters = {entry["key"] for entry in document.get("parameters", ())}
    for axis in sorted(axes & (parameters | _ALWAYS)):
        other = "a parameter" if axis in parameters else "what templates always have"
        yield source.key_fault(
            ("matrix", axis), f"the matrix axis `{axis}` has the name of {other}"
        )
    matrix = document.get("matrix", {})
    if "include" in matrix:
        return
    for at, row in enumerate(matrix.get("exclude", ())):
        for axis in row:
            if axis not in axes:
                trail: Trail = ("matrix", "exclude", at, axis)
                message = f"`{axis}` is no axis of the matrix{nearest(axis, sorted(axes))}"
                yield source.key_fault(trail, message)


def undefined_and_unused(
    document: JsonObject, source: SourceMap, templates: RecipeTemplates
) -> Iterator[Fault]:
    """Template errors, variables that nothing defines, and parameters that nothing uses.

    The columns of `matrix.include` are known only when its file is read, so with one no variable
    counts as undefined; rendering will tell.
    """
    parameters = {entry["key"]: at for at, entry in enumerate(document.get("parameters", ()))}
    known = {*parameters, *_ALWAYS, *axes_of(document)}
    columns_are_open = "include" in document.get("matrix", {})
    used: set[str] = set()
    for trail, text in template_texts(document):
        if trail[0] == "matrix":
            message = (
                f"`{dotted(trail)}`: a matrix holds no templates, since they are rendered from it"
            )
            yield source.fault(trail, message)
        if trail[0] in UNRENDERED:
            continue
        asked = templates.asked_by(text)
        used.update(asked.variables)
        for trouble in asked.troubles:
            yield trouble_fault(source, trail, trouble)
        for name, spot in asked.variables.items():
            if name not in known and not columns_are_open:
                hint = nearest(name, sorted(known))
                message = f"template: nothing defines `{name}`; declare it in `parameters`{hint}"
                yield fault_at(source, trail, spot, message)
    for name, at in parameters.items():
        if name not in used:
            message = f"the parameter `{name}` is declared and never used"
            yield source.fault(("parameters", at), message, "warning")
