"""Commands: `commands/NAME.md`, a prompt with places for arguments, files and shell output.

    $ARGUMENTS   everything after the name            @path    a file of the workspace
    $1 ... $9    one word of it, quotes respected     !`cmd`   what a shell command prints

The template alone says what is a file or a command: arguments are put in after it was taken apart,
so that nothing in them is ever read or run by itself. Into a shell command only plain words go.
"""

import re
import shlex
from collections.abc import Iterable, Iterator

from attrs import define, frozen

from harness_batch.agents.front_matter import split
from harness_batch.agents.record import Attached, Command, OpeningPart, Printed, Words
from harness_batch.agents.shelf import MarkdownFile, Shelf, Warn, by_name
from harness_batch.errors import Fault, FaultyInput
from harness_batch.messages import JsonObject
from harness_batch.schema_faults import schema_faults

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*", re.ASCII)
_ARGUMENT = re.compile(r"\$(ARGUMENTS\b|[1-9](?![0-9]))")
_PART = re.compile(
    r"!`(?P<shell>[^`\n]+)`"
    r"|(?<![\w`@])@(?P<file>(?:[\w./~-]|\$(?:ARGUMENTS\b|[1-9](?![0-9])))+)"
    r"|\$(?P<argument>ARGUMENTS\b|[1-9](?![0-9]))"
)
_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,][A-Za-z0-9_./:@%+,-]*", re.ASCII)
"""Words that mean nothing to a shell, in quotes or out of them, and are no options."""

HEAD: JsonObject = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "description": {"type": "string"},
        "agent": {"type": "string", "minLength": 1},
        "model": {"type": "string", "title": "PROVIDER/MODEL", "pattern": r"^[^/\s]+/\S.*$"},
    },
}
"""JSON Schema of the front matter; a file without one is all template."""


def load_commands(shelves: Iterable[Shelf], faults: list[Fault], warn: Warn) -> dict[str, Command]:
    """By name; later shelves win where they are trusted. Adds to `faults`."""
    return by_name(shelves, "commands", _command, faults, warn)


def _command(found: MarkdownFile, shelf: Shelf) -> Command:
    head: JsonObject = {}
    template = found.text.strip()
    faults: tuple[Fault, ...] = ()
    if found.text.lstrip("\ufeff").startswith("---"):
        parsed = split(found.text, found.file)
        faults = schema_faults(parsed.head, HEAD, file=found.file, place=parsed.place)
        head, template = parsed.head, parsed.body
    if not template:
        faults = (*faults, Fault(found.file, 0, 0, "has no prompt"))
    if not _NAME.fullmatch(found.name):
        told = f"/{found.name} cannot be called: a letter, then letters, digits, `-` and `_`"
        faults = (*faults, Fault(found.file, 0, 0, told))
    if faults:
        raise FaultyInput(faults)
    return Command(
        name=found.name, template=template, file=found.file, trusted=shelf.trusted, **head
    )


@frozen
class Unfit:
    """Why these arguments do not fit the template."""

    reason: str


def opening(command: Command, arguments: str) -> tuple[OpeningPart, ...] | Unfit:
    """The template taken apart, arguments in their places; they go to the end if it has none."""
    filling = _Filling(arguments.strip())
    parts = list(filling.parts(command.template))
    if filling.unfit is not None:
        return Unfit(f"/{command.name}: {filling.unfit}")
    if not _ARGUMENT.search(command.template) and filling.whole:
        parts.append(Words(f"\n\n{filling.whole}"))
    return tuple(_joined(parts))


@define
class _Filling:
    """Arguments on their way into a template."""

    whole: str
    unfit: str | None = None

    def parts(self, template: str) -> Iterator[OpeningPart]:
        """In order, words not joined yet."""
        end = 0
        for found in _PART.finditer(template):
            yield Words(template[end : found.start()])
            end = found.end()
            if found["shell"] is not None:
                yield Printed(_ARGUMENT.sub(lambda m: self.plain(m[1]), found["shell"]))
            elif found["argument"] is not None:
                yield Words(self.word(found["argument"]))
            else:
                named = found["file"].rstrip(".")
                path = _ARGUMENT.sub(lambda m: self.word(m[1]), named)
                yield Attached(path, f"@{path}") if path else Words("@")
                yield Words(found["file"][len(named) :])
        yield Words(template[end:])

    def word(self, which: str) -> str:
        """All of it, or one word; empty when it was not given."""
        if which == "ARGUMENTS":
            return self.whole
        words = _words(self.whole)
        return words[int(which) - 1] if int(which) <= len(words) else ""

    def plain(self, which: str) -> str:
        """As `word`, for a shell: what is not plain is noted as unfit."""
        words = _words(self.whole) if which == "ARGUMENTS" else [self.word(which)]
        for word in words:
            if not _PLAIN.fullmatch(word):
                self.unfit = (
                    f"${which} stands in a shell command, and only plain words may go there "
                    f"(letters, digits and ./:@%+,-_, not beginning with `-`), not {word!r}"
                )
        return " ".join(words)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _joined(parts: Iterable[OpeningPart]) -> Iterator[OpeningPart]:
    text = ""
    for part in parts:
        if isinstance(part, Words):
            text += part.text
            continue
        if text:
            yield Words(text)
            text = ""
        yield part
    if text:
        yield Words(text)
