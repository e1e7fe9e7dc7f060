"""One edit, or several in a row, on the bytes of a file. Pure: bytes in, bytes out."""

from collections.abc import Mapping, Sequence

from attrs import frozen

from harness_batch.messages import JsonObject
from harness_batch.tools.fallbacks import unescape
from harness_batch.tools.matching import Match, Unmatched, find
from harness_batch.tools.text import BOM, Source, decode, encode


@frozen
class Edit:
    """Put `new` where `old` stands; `every` takes all places instead of the only one."""

    old: str
    new: str
    every: bool = False

    @classmethod
    def parse(cls, arguments: JsonObject) -> "Edit":
        """From the arguments of a call, valid by its schema."""
        every = arguments.get("replace_all", False)
        return cls(arguments["old_string"], arguments["new_string"], every)


@frozen
class Edited:
    """The file's new bytes, and what was done."""

    data: bytes
    replaced: int
    """Places."""
    ways: tuple[str, ...]
    """How the old text was found, where that was not letter by letter."""


def apply_edits(data: bytes, edits: Sequence[Edit]) -> Edited | Unmatched:
    """All edits in order, each on the outcome of the one before, or none."""
    text = decode(data)
    bom = BOM if text.startswith(BOM) else ""
    text = text.removeprefix(BOM)
    replaced = 0
    ways: list[str] = []
    for number, edit in enumerate(edits, start=1):
        done = _misfit(edit) or _apply(text, edit)
        if isinstance(done, Unmatched):
            which = f"Edit {number} of {len(edits)}: " if len(edits) > 1 else ""
            nothing = " No edit of this call was applied." if len(edits) > 1 else ""
            return Unmatched(f"{which}{done.reason}{nothing}")
        text, count, way = done
        replaced += count
        if way != "exact":
            ways.append(way)
    return Edited(encode(bom + text), replaced, tuple(ways))


def unwritable(text: str) -> str | None:
    """Why a text of the model's cannot become bytes of a file."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"the text holds a lone surrogate (character {error.start + 1}); remove it."
    return None


def _misfit(edit: Edit) -> Unmatched | None:
    for text in (edit.old, edit.new):
        reason = unwritable(text)
        if reason is not None:
            return Unmatched(reason)
    if edit.old == edit.new:
        return Unmatched("old_string and new_string are the same; nothing would change.")
    return None


def _apply(text: str, edit: Edit) -> tuple[str, int, str] | Unmatched:
    """The new text, how many places, and the way the old text was found."""
    if not edit.old:
        if text:
            return Unmatched(
                "old_string is empty, but the file is not. Give the text to replace; to insert, "
                "give a line beside the place and repeat it in new_string."
            )
        return edit.new, 1, "exact"
    if "\r" in edit.old and edit.old in text:
        return _by_the_byte(text, edit)
    source = Source(text)
    old = edit.old.replace("\r\n", "\n")
    match find(source, old, every=edit.every):
        case Unmatched() as unmatched:
            return unmatched
        case Match(spans=spans, way=way):
            new = (_fitted(source.view[a:b], old, edit.new, way) for a, b in spans)
            return (
                source.spliced((a, b, text) for (a, b), text in zip(spans, new, strict=True)),
                len(spans),
                way,
            )


def _by_the_byte(text: str, edit: Edit) -> tuple[str, int, str] | Unmatched:
    """The model names carriage returns itself: nothing is adapted."""
    count = text.count(edit.old)
    if count > 1 and not edit.every:
        return Unmatched(
            f"old_string stands in {count} places. Add surrounding lines until it is unique, or "
            "set replace_all to true to change all of them."
        )
    return text.replace(edit.old, edit.new), count, "exact"


def _fitted(here: str, old: str, new: str, way: str) -> str:
    """The new text, changed in the way in which the old one differed from what stands here."""
    match way:
        case "exact":
            return new
        case "unescaped text":
            return unescape(new)
        case "trimmed boundary" | "normalised blanks":
            return _trimmed_alike(old, new)
        case _:
            closed = old.endswith("\n") and not here.endswith("\n")
            fitted = _reindented(here.split("\n"), old.split("\n"), new)
            return fitted.removesuffix("\n") if closed else fitted


def _trimmed_alike(old: str, new: str) -> str:
    """`new` without the blanks at its ends that `old` had and the file has not."""
    head = old[: len(old) - len(old.lstrip())]
    tail = old[len(old.rstrip()) :]
    begun = new.removeprefix(head) if new.startswith(head) else new.lstrip(" \t")
    return begun.removesuffix(tail)


def _reindented(here: Sequence[str], old: Sequence[str], new: str) -> str:
    """`new` with the file's indentation wherever the old text tells what stands for what."""
    known = _indentations(here, old)
    if all(mine == wanted for mine, wanted in known.items()):
        return new
    return "\n".join(_moved(line, known) for line in new.split("\n"))


def _moved(line: str, known: Mapping[str, str]) -> str:
    mine = _indentation(line)
    nearest = max((one for one in known if mine.startswith(one)), key=len, default=None)
    if nearest is None or not line.strip():
        return line
    return known[nearest] + line.removeprefix(nearest)


def _indentations(here: Sequence[str], old: Sequence[str]) -> dict[str, str]:
    """The old text's indentations and those of the file's lines; empty when they contradict."""
    known: dict[str, str] = {}
    deeper: set[str | None] = set()
    for theirs, ours in zip(here, old, strict=False):
        if not (theirs.strip() and ours.strip()):
            continue
        mine, wanted = _indentation(ours), _indentation(theirs)
        if known.setdefault(mine, wanted) != wanted:
            return {}
        more = len(wanted) - len(mine)
        deeper.add(wanted[:more] if more >= 0 and wanted.endswith(mine) else None)
    shift = deeper.pop() if len(deeper) == 1 else None
    if shift is not None:
        known.setdefault("", shift)
    return known


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
