"""What edit, multiedit and write share: load, apply, save, and answer with a diff. Blocks."""

from collections.abc import Sequence

from harness_batch.tools.diff import diff
from harness_batch.tools.editing import Edit, Edited, apply_edits
from harness_batch.tools.files import Content, Folder, Missing, load, save, unread
from harness_batch.tools.matching import Unmatched
from harness_batch.tools.paths import Place, Refused, admitted
from harness_batch.tools.protocol import ToolContext, ToolResult


def change_file(text: str, edits: Sequence[Edit], context: ToolContext) -> ToolResult:
    """Apply all edits to the file that the model calls `text`, or none."""
    place = admitted(text, "edit", context)
    if isinstance(place, Refused):
        return place.result()
    before = present(place, context, new=not edits[0].old)
    if isinstance(before, Refused):
        return before.result()
    data = b"" if before is None else before.data
    match apply_edits(data, edits):
        case Unmatched(reason=reason):
            return ToolResult(output=f"{place.shown}: {reason}", title=place.shown, status="error")
        case Edited() as edited:
            return _saved(place, before, edited, context)


def present(place: Place, context: ToolContext, *, new: bool) -> Content | Refused | None:
    """The file as it is, read before and unchanged; None when it is missing and may be `new`."""
    match load(place):
        case Content() as content:
            return unread(place, content.fingerprint, context.files) or content
        case Missing() as missing:
            return None if new else missing.refused(place)
        case Folder():
            return Refused(f"{place.shown} is a folder, not a file.")
        case Refused() as refused:
            return refused


def put(place: Place, before: Content | None, data: bytes, context: ToolContext) -> Refused | None:
    """Save, and remember that this session knows the file."""
    saved = save(place, data, None if before is None else before.mode)
    if isinstance(saved, Refused):
        return saved
    context.files.seen[place.path] = saved
    return None


def hard_link_note(before: Content | None) -> str:
    """A file with several names: only this one has the new content."""
    if before is None or before.links < 2:
        return ""
    return (
        f"\nNote: the file was a hard link with {before.links} names; only this name has the new "
        "content."
    )


def _saved(
    place: Place, before: Content | None, edited: Edited, context: ToolContext
) -> ToolResult:
    old = b"" if before is None else before.data
    if before is not None and edited.data == old:
        return ToolResult(
            output=f"{place.shown}: the edit leaves the file as it was; nothing was written.",
            title=place.shown,
            status="error",
        )
    refused = put(place, before, edited.data, context)
    if refused is not None:
        return refused.result()
    done = "Created" if before is None else "Edited"
    places = "1 place" if edited.replaced == 1 else f"{edited.replaced} places"
    loosely = f" (found by: {', '.join(edited.ways)})" if edited.ways else ""
    changed = diff(old, edited.data, place.shown)
    return ToolResult(
        output=f"{done} {place.shown}: {places} replaced{loosely}, now {len(edited.data)} bytes."
        f"{hard_link_note(before)}\n{changed}",
        title=place.shown,
        metadata={"path": place.shown},
    )
