"""How JUnit differs from reader to reader: one table, a line for each dialect.

`plain`, `surefire` and `jenkins` hold to the schema of Jenkins' xunit plugin, which knows neither
properties nor a file of a test case; `gitlab` and `azure` read more. GitLab takes the first
attachment only, relative to the project. Jenkins and Azure want absolute paths. Azure's names are
class name, dot and case name in at most 512 characters.
"""

from hashlib import blake2b
from pathlib import PurePath
from typing import Literal, TypedDict

from attrs import frozen

from harness_batch_reports.places import Places
from harness_batch_reports.records import Session

NAME_LIMIT = 512


class Place(TypedDict, total=False):
    """Attributes of a case that point at its recipe."""

    file: str | None
    line: int | None


@frozen(kw_only=True)
class Dialect:
    """What one reader understands."""

    paths: Literal["run", "project", "absolute"]
    """What attachment paths are relative to."""
    case_properties: bool = False
    case_places: bool = False
    attachments_first: bool = False
    attachments: int = 4
    """How many attachments of one case are read."""
    reruns: bool = False
    joint_names: bool = False
    """Class name and case name share `name_limit`."""
    name_limit: int = NAME_LIMIT
    classname_limit: int = 255

    def limit_beside(self, classname: str) -> int:
        """Characters left for a case's name."""
        return self.name_limit - len(classname) - 1 if self.joint_names else self.name_limit

    def place(self, session: Session, places: Places) -> Place:
        """`file` and `line` of the recipe, where the dialect has them."""
        if not self.case_places or session.recipe_file is None:
            return {}
        return {"file": places.in_project(session.recipe_file), "line": 1}

    def attached(self, session: Session, places: Places) -> str:
        """The attachment lines of a session: patch and transcript before the answer."""
        patch_first = sorted(session.files, key=lambda file: PurePath(file).suffix != ".patch")
        lines = (self._path(file, places) for file in patch_first[: self.attachments])
        return "\n".join(f"[[ATTACHMENT|{line}]]" for line in lines)

    def _path(self, file: str, places: Places) -> str:
        if self.paths == "run" or places.run is None:
            return file
        whole = (places.run / file).as_posix()
        return whole if self.paths == "absolute" else places.in_project(whole)


DIALECTS: dict[str, Dialect] = {
    "plain": Dialect(paths="run"),
    "surefire": Dialect(paths="run", reruns=True),
    "gitlab": Dialect(
        paths="project",
        case_properties=True,
        case_places=True,
        attachments_first=True,
        attachments=1,
    ),
    "azure": Dialect(paths="absolute", case_properties=True, case_places=True, joint_names=True),
    "jenkins": Dialect(paths="absolute"),
}
"""By the name that `--junit-dialect` takes."""


def short_name(text: str, limit: int) -> str:
    """At most `limit` characters; what is cut is told apart by eight digits of its hash."""
    if len(text) <= limit:
        return text
    mark = f"…{blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=4).hexdigest()}"
    return text[: limit - len(mark)] + mark
