"""YAML 1.2 in, plain values with their places out; duplicates, bombs and unknown tags are faults.

libyaml scans, this file composes: values follow the YAML 1.2 core schema (`on` and `yes` are
texts, `0o17` is octal, `<<` is a plain key). Depth and number of values are checked while events
come in, before anything is built from them.
"""

import math
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import yaml
from attrs import Factory, define, evolve, frozen

from harness_batch.recipe.source_map import MAX_DIGITS, TOO_DEEP, Json, Place, Reading, Trail

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_CORE = (
    ("null", re.compile(r"~|null|Null|NULL|")),
    ("bool", re.compile(r"true|True|TRUE|false|False|FALSE")),
    ("int", re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")),
    (
        "float",
        re.compile(
            r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
            r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
        ),
    ),
)
"""The YAML 1.2 core schema, chapter 10.3."""

_HINTS = (
    ("mapping values are not allowed", "a text with `: ` in it needs quotes"),
    ("found character '\\t'", "indent with blanks, not tabs"),
    ("found character that cannot start any token", "such a text needs quotes; tabs do not indent"),
    ("did not find expected <document start>", "everything must belong to one mapping"),
    ("found unexpected end of stream", "a quote is never closed"),
)

TEMPLATED_STRUCTURE = (
    "templates are rendered in texts, after the file is read as YAML, so they cannot build its "
    'structure: put a value in quotes ("{{ name }}"), or the whole text in a block (`|`)'
)


def read_yaml(text: str, file: Path) -> Reading:
    """The one document of the text; None when it is empty. Duplicate keys and tags are noted.

    Raises: FaultyInput when the text is no YAML or grows beyond the limits.
    """
    reading = Reading(file)
    lines = text.splitlines()
    try:
        _Composer(reading, yaml.parse(text, Loader=_LOADER), lines).document()
    except yaml.MarkedYAMLError as error:
        unclosed = error.context_mark if "end of stream" in str(error.problem) else None
        mark = unclosed or error.problem_mark or error.context_mark
        place = _place(mark) if mark else Place(1, 1, 1)
        raise reading.stopped(_explained(error, lines), place) from error
    except yaml.YAMLError as error:
        raise reading.stopped(f"is no YAML: {error}", Place(1, 1, 1)) from error
    return reading


def _place(mark: Json) -> Place:
    return Place(mark.line + 1, mark.column + 1, mark.line + 1)


def _explained(error: yaml.MarkedYAMLError, lines: list[str]) -> str:
    marks = [m for m in (error.problem_mark, error.context_mark) if m is not None]
    near = [lines[m.line] for m in marks if m.line < len(lines)]
    if error.problem_mark is not None and 0 < error.problem_mark.line <= len(lines):
        near.append(lines[error.problem_mark.line - 1])
    if any(line.lstrip(" -").startswith(("{%", "{{", "{#")) or ": {{" in line for line in near):
        return TEMPLATED_STRUCTURE
    problem = str(error.problem or error.context)
    if problem == "exceeded maximum nesting depth":  # libyaml reads ahead of its events
        return TOO_DEEP
    hint = next((hint for start, hint in _HINTS if problem.startswith(start)), None)
    return f"is no YAML: {problem}" + (f" ({hint})" if hint else "")


@frozen
class _Anchor:
    value: Json
    size: int


@define
class _Composer:
    """Builds values from libyaml's events."""

    reading: Reading
    events: Iterator[yaml.Event]
    lines: list[str]
    anchors: dict[str, _Anchor | None] = Factory(dict)
    """None while the anchor's own value is still being built."""
    built: int = 0

    def document(self) -> None:
        """Read the stream, which holds at most one document."""
        for event in self.events:
            match event:
                case yaml.StreamStartEvent() | yaml.StreamEndEvent() | yaml.DocumentEndEvent():
                    pass
                case yaml.DocumentStartEvent() if self.reading.places:
                    message = "a second document begins here; a recipe is one document"
                    raise self.reading.stopped(message, _place(event.start_mark))
                case yaml.DocumentStartEvent():
                    pass
                case _:
                    self.reading.value = self.node(event, ())

    def node(self, event: yaml.Event, trail: Trail) -> Json:
        """The value that begins with the event."""
        place = self.place_of(event)
        self.reading.enter(trail, place)
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event, place)
        before, anchor = self.built, getattr(event, "anchor", None)
        self.built += 1
        if anchor:
            self.anchors[anchor] = None
        match event:
            case yaml.ScalarEvent():
                value = self.scalar(event, place)
            case yaml.SequenceStartEvent():
                self.check_tag(event, "seq", place)
                value = self.sequence(trail)
            case _:
                self.check_tag(event, "map", place)
                value = self.mapping(trail, place)
        if anchor:
            self.anchors[anchor] = _Anchor(value, self.built - before)
        return value

    def place_of(self, event: yaml.Event) -> Place:
        """Where the value stands; a literal block begins on the line below its mark."""
        place = _place(event.start_mark)
        block = isinstance(event, yaml.ScalarEvent) and event.style == "|"
        return evolve(place, text_line=place.line + 1) if block else place

    def sequence(self, trail: Trail) -> list[Json]:
        """The items up to the end event."""
        items: list[Json] = []
        for event in self.events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            items.append(self.node(event, (*trail, len(items))))
        return items

    def mapping(self, trail: Trail, opened: Place) -> dict[str, Json]:
        """The entries up to the end event; of a key that is there twice the first one stays."""
        entries: dict[str, Json] = {}
        for event in self.events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            place = self.place_of(event)
            if not isinstance(event, yaml.ScalarEvent):
                self.skip_odd_key(event, (*trail, "?"), opened)
                continue
            self.reading.fit(event.value, place)
            key = (*trail, event.value)
            twice = self.reading.twice(key, place)
            value = self.node(
                next(self.events), (*trail, f"{event.value} (again)") if twice else key
            )
            if not twice:
                entries[event.value] = value
        return entries

    def skip_odd_key(self, event: yaml.Event, trail: Trail, opened: Place) -> None:
        """Read past a key that is a list or mapping itself, and its value."""
        place = self.place_of(event)
        line = self.lines[opened.line - 1][opened.column - 1 :]
        templated = line.startswith("{{")
        message = TEMPLATED_STRUCTURE if templated else "a key must be a plain word"
        self.reading.note(message, opened if templated else place)
        self.node(event, trail)
        self.node(next(self.events), trail)

    def alias(self, event: yaml.AliasEvent, place: Place) -> Json:
        """A copy of what the alias stands for."""
        name = str(event.anchor)
        if name not in self.anchors:
            raise self.reading.stopped(f"the alias `*{name}` stands for nothing", place)
        anchor = self.anchors[name]
        if anchor is None:
            raise self.reading.stopped(f"the alias `*{name}` stands inside itself", place)
        self.reading.count(anchor.size, place)
        self.built += anchor.size
        return deepcopy(anchor.value)

    def check_tag(self, event: yaml.Event, kind: str, place: Place) -> None:
        """Only the core schema's own tags say something here."""
        tag = getattr(event, "tag", None)
        if tag not in (None, "!", f"tag:yaml.org,2002:{kind}"):
            self.reading.note(f"the tag `{_short(str(tag))}` is not allowed here", place)

    def scalar(self, event: yaml.ScalarEvent, place: Place) -> Json:
        """A text, number, boolean or null, by its form or by its tag."""
        text = self.reading.fit(str(event.value), place)
        if event.tag is None:
            kind = _kind(text) if event.implicit[0] else "str"
            return self.converted(kind, text, place)
        if event.tag in ("!", "tag:yaml.org,2002:str"):
            return text
        kind = str(event.tag).removeprefix("tag:yaml.org,2002:")
        form = dict(_CORE).get(kind)
        if form is None:
            self.reading.note(f"the tag `{_short(str(event.tag))}` is not allowed here", place)
            return text
        if not form.fullmatch(text):
            self.reading.note(
                f"`{text[:40]}` is not what its tag `{_short(event.tag)}` says", place
            )
            return text
        return self.converted(kind, text, place)

    def converted(self, kind: str, text: str, place: Place) -> Json:
        """The value of a text whose form is known."""
        match kind:
            case "null":
                return None
            case "bool":
                return text.lower() == "true"
            case "str":
                return text
            case _:
                return self.number(kind, text, place)

    def number(self, kind: str, text: str, place: Place) -> int | float:
        """A number that is finite and of bearable length."""
        if len(text) > MAX_DIGITS:
            self.reading.note(
                f"a number of {len(text)} digits is too long; quotes make it a text", place
            )
            return 0
        if kind == "int":
            return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
        value = float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        if not math.isfinite(value):
            self.reading.note(f"`{text}` is not a finite number; quotes make it a text", place)
            return 0.0
        return value


def _kind(text: str) -> str:
    return next((kind for kind, form in _CORE if form.fullmatch(text)), "str")


def _short(tag: str) -> str:
    return tag.replace("tag:yaml.org,2002:", "!!")
