"""From a recipe's `matrix` to rows of variables: axes multiplied, `exclude` taken away, `include`
added. Rows come in the order of the file, the last axis varying fastest.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from attrs import Factory, define

from harness_batch.errors import Fault, FaultyInput, GitError, HarnessError, UsageError
from harness_batch.messages import JsonObject
from harness_batch.plan.globs import literal_folder, matching
from harness_batch.plan.inputs import RecipeSource, RepoBase, RepoFiles
from harness_batch.plan.tables import TableFault, read_table
from harness_batch.words import nearest

MAX_ROWS = 100_000
RESERVED = ("include", "exclude")
TAKEN = ("recipe_dir",)
"""Template variables that are always there."""


def rows(source: RecipeSource, base: RepoBase, files: RepoFiles) -> tuple[JsonObject, ...]:
    """One row of variables per item; one empty row without a matrix, none for an empty one.

    Raises: FaultyInput with everything that is wrong with the declaration.
    """
    if source.matrix is None:
        return ({},)
    reading = _Reading(source, source.matrix, base, files)
    found = reading.rows()
    if reading.faults:
        raise FaultyInput(list(dict.fromkeys(reading.faults)))
    return found


@define
class _Reading:
    """One declaration being read, and what was wrong so far."""

    source: RecipeSource
    declaration: JsonObject
    base: RepoBase
    files: RepoFiles
    faults: list[Fault] = Factory(list)

    def rows(self) -> tuple[JsonObject, ...]:
        axes = {
            name: self._axis(name, declared)
            for name, declared in self.declaration.items()
            if name not in RESERVED
        }
        included = self._include()
        names = dict.fromkeys((*axes, *(column for row in included for column in row)))
        for name in names:
            self._check_name(name)
        excluded = self._exclude(axes)
        if self._too_many(axes, len(included)):
            return ()
        product = itertools.product(*axes.values()) if axes else ()
        multiplied = (dict(zip(axes, values, strict=True)) for values in product)
        kept = [row for row in multiplied if not any(_covers(some, row) for some in excluded)]
        ordered = ({name: row[name] for name in names if name in row} for row in included)
        return (*kept, *ordered)

    def _axis(self, name: str, declared: object) -> list[Any]:
        match declared:
            case list():
                return self._distinct(name, declared)
            case {"glob": str() as pattern, **rest} if not rest:
                return self._globbed(name, pattern)
            case {"files_changed_since": str() as ref, **rest} if not rest:
                return self._changed(name, ref)
        told = "must be a list of values, {glob: PATTERN} or {files_changed_since: REF}"
        self._fault(f"axis {name!r} {told}", name)
        return []

    def _distinct(self, name: str, values: Sequence[object]) -> list[Any]:
        seen: dict[str, int] = {}
        for index, value in enumerate(values):
            if not _is_plain(value):
                told = f"axis {name!r} holds {value!r}: values are text, numbers or true and false"
                self._fault(told, name, index)
            elif word(value) in seen:
                self._fault(f"axis {name!r} holds {word(value)!r} twice", name, index)
            else:
                seen[word(value)] = index
        return list(values)

    def _globbed(self, name: str, pattern: str) -> list[Any]:
        path = PurePosixPath(pattern)
        if not pattern.strip("/") or path.is_absolute() or ".." in path.parts:
            self._fault(f"axis {name!r}: the glob must stay inside the repository", name, "glob")
            return []
        try:
            return matching(pattern, self.files.paths(self.base, literal_folder(pattern)))
        except (GitError, ValueError) as error:
            self._fault(f"axis {name!r}: {error}", name, "glob")
            return []

    def _changed(self, name: str, ref: str) -> list[Any]:
        try:
            return sorted(set(self.files.changed_since(self.base, ref)))
        except (GitError, UsageError) as error:
            self._fault(f"axis {name!r}: {error}", name, "files_changed_since")
            return []

    def _include(self) -> list[JsonObject]:
        match self.declaration.get("include"):
            case None:
                return []
            case list() as found:
                place: tuple[str | int, ...] = ("include",)
            case {"csv": str() as path, **rest} if not rest:
                place, found = ("include", "csv"), self._table(path, "csv")
            case {"json": str() as path, **rest} if not rest:
                place, found = ("include", "json"), self._table(path, "json")
            case {"query": str() as sql, **rest} if not rest:
                place, found = ("include", "query"), self._asked(sql)
            case _:
                told = "include must be a list of rows, {csv: FILE}, {json: FILE} or {query: SQL}"
                self._fault(told, "include")
                return []
        return list(self._plain_rows(found, place))

    def _table(self, path: str, form: str) -> list[Any]:
        try:
            return read_table(self.source.file.parent / path, form)
        except TableFault as error:
            self._fault(f"include: {path}: {error}", "include", form)
            return []

    def _asked(self, sql: str) -> list[Any]:
        try:
            return list(self.files.asked(sql, MAX_ROWS + 1))
        except HarnessError as error:
            self._fault(f"include: query: {error}", "include", "query")
            return []

    def _plain_rows(self, found: list[Any], place: tuple[str | int, ...]) -> Iterator[JsonObject]:
        for index, row in enumerate(found):
            where = (*place, index) if len(place) == 1 else place
            if not isinstance(row, dict) or not row:
                self._fault(f"include: row {index + 1} must be a mapping of variables", *where)
            elif odd := [name for name, value in row.items() if not _is_plain(value)]:
                told = f"include: row {index + 1}: {odd[0]!r} must be text, a number, true or false"
                self._fault(told, *where)
            else:
                yield row

    def _exclude(self, axes: JsonObject) -> list[JsonObject]:
        declared = self.declaration.get("exclude", [])
        if not isinstance(declared, list):
            self._fault("exclude must be a list of {axis: value}", "exclude")
            return []
        for index, some in enumerate(declared):
            if not isinstance(some, dict) or not some:
                self._fault("exclude must be a list of {axis: value}", "exclude", index)
                continue
            for name in some:
                if name not in axes:
                    told = f"exclude: there is no axis `{name}`{nearest(name, axes)}"
                    self._fault(told, "exclude", index, name)
        return [some for some in declared if isinstance(some, dict) and some]

    def _check_name(self, name: str) -> None:
        where = name if name in self.declaration else "include"
        if not name.isidentifier():
            self._fault(f"{name!r} cannot be a variable: letters, digits and _ only", where)
        elif name in self.source.declared:
            self._fault(f"the matrix variable {name!r} is a parameter, too; rename one", where)
        elif name in TAKEN:
            self._fault(f"the variable {name!r} is always there; choose another name", where)

    def _too_many(self, axes: JsonObject, included: int) -> bool:
        count = math.prod(len(values) for values in axes.values()) if axes else 0
        if count + included > MAX_ROWS:
            self._fault(f"the matrix has {count + included:,} rows, more than {MAX_ROWS:,}")
            return True
        return False

    def _fault(self, message: str, *path: str | int) -> None:
        line, column = self.source.place("matrix", *path)
        self.faults.append(Fault(self.source.file, line, column, message))


def word(value: object) -> str:
    """A value as an item key shows it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _is_plain(value: object) -> bool:
    return isinstance(value, str | bool | int) or (
        isinstance(value, float) and math.isfinite(value)
    )


def _covers(some: JsonObject, row: JsonObject) -> bool:
    # `True == 1` in Python; in a matrix they are different values.
    return all(
        name in row
        and row[name] == value
        and isinstance(row[name], bool) == isinstance(value, bool)
        for name, value in some.items()
    )
