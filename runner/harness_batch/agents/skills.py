"""Skills: `skills/NAME/SKILL.md` with `name` and `description` in front, instructions below.

A repository's skill never takes the place of one of the user's. Other keys in front (licence,
allowed tools of other programs) are passed over: a skill grants nothing.
"""

import re
from collections.abc import Iterable

from harness_batch.agents.front_matter import split
from harness_batch.agents.record import Skill
from harness_batch.agents.shelf import MAX_FILES, MarkdownFile, Shelf, Warn, by_name
from harness_batch.errors import Fault, FaultyInput

MAX_DESCRIPTION = 1024
"""Characters; every session pays for them."""

_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")


def load_skills(shelves: Iterable[Shelf], faults: list[Fault], warn: Warn) -> dict[str, Skill]:
    """By name; later shelves win where they are trusted. Adds to `faults`."""
    return by_name(shelves, "skills", _skill, faults, warn)


def _skill(found: MarkdownFile, shelf: Shelf) -> Skill:
    parsed = split(found.text, found.file)
    name, description = parsed.head.get("name", found.name), parsed.head.get("description")
    faults = []
    if name != found.name:
        told = f"`name` is {name!r}, but its folder is {found.name!r}; they must be the same"
        faults.append(Fault(found.file, *parsed.place(("name",)), told))
    if not isinstance(description, str) or not description.strip():
        told = "needs a `description`: a line that says when the skill is of use"
        faults.append(Fault(found.file, *parsed.place(("description",)), told))
    elif len(description) > MAX_DESCRIPTION:
        told = f"`description` has {len(description)} characters, at most {MAX_DESCRIPTION}"
        faults.append(Fault(found.file, *parsed.place(("description",)), told))
    if not parsed.body:
        faults.append(Fault(found.file, 0, 0, "has no instructions below its head"))
    if faults:
        raise FaultyInput(faults)
    folder = found.path.rpartition("/")[0] + "/"
    beside = [one for one in shelf.names("skills") if one.startswith(folder) and one != found.path]
    return Skill(
        name=found.name,
        description=" ".join(_UNSEEN.sub(" ", str(description)).split()),
        body=parsed.body,
        file=found.file,
        files=tuple(shelf.shown(one) for one in beside[:MAX_FILES]),
        trusted=shelf.trusted,
    )
