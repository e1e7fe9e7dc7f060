"""What comes along with the user and with a repository: agents, skills, commands and notes.

Of a repository all of it is read from the commit that sessions start from, never from the
checkout: neither uncommitted files nor an agent at work can change what a session is told. In a job
of a pull request it is the commit that the request is against, so that it cannot bring its own.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from attrs import Factory, define, frozen

from harness_batch.agents.equipment import equip
from harness_batch.agents.record import Equipment
from harness_batch.agents.shelf import DiskShelf, Shelf
from harness_batch.app.ci import review_base
from harness_batch.app.options import Inputs
from harness_batch.config.record import Config
from harness_batch.engine.project_files import project_notes, standing_instructions
from harness_batch.engine.prompt import ProjectFile
from harness_batch.errors import Fault, GitError
from harness_batch.plan.inputs import RepoBase
from harness_batch.plan.item import Item
from harness_batch.workspace.base_files import BaseFile, BaseFiles
from harness_batch.workspace.repository import Repository, resolve_base

FOLDER = ".harness"


def user_shelf(environ: Mapping[str, str]) -> DiskShelf | None:
    """`~/.config/harness-batch`; None without a home."""
    if base := environ.get("XDG_CONFIG_HOME"):
        return DiskShelf(Path(base, "harness-batch"))
    home = environ.get("HOME")
    return DiskShelf(Path(home, ".config", "harness-batch")) if home else None


def user_agents(environ: Mapping[str, str]) -> frozenset[str]:
    """Names of the user's own agents, which a repository's configuration may not redefine."""
    shelf = user_shelf(environ)
    names = shelf.names("agents") if shelf is not None else ()
    return frozenset(PurePosixPath(name).stem for name in names if name.endswith(".md"))


@frozen
class CommitShelf:
    """`.harness/` of a repository at a commit."""

    files: BaseFiles
    trusted: bool

    def names(self, kind: str) -> Sequence[str]:
        """Raises: GitError."""
        return sorted(self._mine(kind))

    def read(self, name: str, most: int) -> bytes:
        """Raises: OSError."""
        try:
            return self.files.read(self._mine(name.partition("/")[0])[name], most)
        except GitError as error:
            raise OSError(0, str(error)) from None

    def place(self, name: str) -> Path:
        """Where it lies in a checkout."""
        return self.files.repository.path / FOLDER / name

    def shown(self, name: str) -> str:
        """Relative to the workspace, where it lies as well."""
        return f"{FOLDER}/{name}"

    def _mine(self, kind: str) -> dict[str, BaseFile]:
        start = len(FOLDER) + 1
        return {file.path[start:]: file for file in self.files.below(f"{FOLDER}/{kind}")}


@frozen
class NotesTree:
    """A commit as the notes see it."""

    files: BaseFiles

    def names(self) -> Sequence[str]:
        """Raises: GitError."""
        return [file.path for file in self.files.all]

    def read(self, names: Sequence[str], most: int) -> dict[str, bytes | str]:
        """Content, or words on why there is none, of those that are there. Raises: GitError."""
        found: dict[str, bytes | str] = {}
        for name, file in self.files.named(names).items():
            try:
                found[name] = self.files.read(file, most)
            except GitError as error:
                found[name] = str(error)
        return found


@define
class Library:
    """Equipment and notes of every base, each read once."""

    inputs: Inputs
    config: Config
    repositories: Mapping[str, Repository]
    """By path; those of the bases that are asked for."""
    warnings: dict[Fault, None] = Factory(dict)
    """What was left out."""
    _equipment: dict[tuple[str, str | None], Equipment] = Factory(dict)
    _notes: dict[tuple[str, str | None, str], tuple[ProjectFile, ...]] = Factory(dict)

    def equipment(self, base: RepoBase) -> Equipment:
        """Raises: FaultyInput, GitError."""
        key = (str(base.path), base.base_sha)
        if key not in self._equipment:
            mine = user_shelf(self.inputs.environ)
            shelves: list[Shelf] = [mine] if mine is not None else []
            if self.inputs.repo_config:
                shelves.append(CommitShelf(self._files(*key), self.inputs.trust_repo))
            self._equipment[key] = equip(shelves, self.config.agents)
        return self._equipment[key]

    def notes(self, item: Item) -> tuple[ProjectFile, ...]:
        """What the system prompt quotes for the item. Raises: GitError."""
        folder = PurePosixPath(item.recipe.workspace.path).as_posix()
        key = (item.repo, item.base_sha, folder)
        if key not in self._notes:
            globs = self.config.instructions
            mine = [glob for glob in globs if glob.startswith("/")]
            theirs = [glob for glob in globs if not glob.startswith("/")]
            tree = NotesTree(self._files(item.repo, item.base_sha))
            self._notes[key] = (
                *standing_instructions(mine),
                *project_notes(tree, folder, theirs),
            )
        return self._notes[key]

    def _files(self, path: str, sha: str | None) -> BaseFiles:
        """Of what the session starts from; of a change under review of what it is against."""
        repository = self.repositories[path]
        against = None if self.inputs.trust_repo else review_base(self.inputs.environ)
        if against is None or not self.inputs.cwd.resolve().is_relative_to(repository.path):
            return BaseFiles(repository, sha)
        try:
            return BaseFiles(repository, resolve_base(repository, against))
        except GitError as error:
            told = f"agents, skills, commands and notes of the repository are left out: {error}"
            fault = Fault(repository.path, 0, 0, f"{told} (a change under review)", "warning")
            self.warnings[fault] = None
            return BaseFiles(repository, None)
