"""Jinja in the texts of a recipe: what they ask for, told without values, and what they say.

Rendering happens after the file was read, text by text, so a value can never change the document.
Trouble is a value here: the caller knows where the text stands and makes a fault of it.
"""

import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from attrs import Factory, define, frozen
from jinja2 import Environment, Template, TemplateNotFound, TemplateSyntaxError, meta, nodes
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.loaders import BaseLoader

from harness_batch.errors import FaultyInput
from harness_batch.recipe.file_text import UNFIT, read_small_text
from harness_batch.recipe.template_budget import Budget
from harness_batch.recipe.template_sandbox import MeteredEnvironment

_MARKS = ("{{", "{%", "{#")
_TEXT = "<text of the recipe>"
_COMPILING = (TemplateError, SyntaxError, RecursionError, MemoryError, OverflowError, ValueError)
_RENDERING = (
    *(TemplateError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError),
    *(RuntimeError, MemoryError, AssertionError, FaultyInput),
)
"""What expressions of a template can raise: they call Python's own operators and methods."""


@frozen
class Spot:
    """A line (1-based) of a text, or of an included file when `file` says so."""

    line: int
    file: Path | None = None


@frozen
class Trouble:
    """A template that cannot be read or rendered."""

    message: str
    spot: Spot


@frozen
class Asked:
    """What a template and the files it includes ask for."""

    variables: Mapping[str, Spot]
    troubles: tuple[Trouble, ...] = ()


def is_template(text: str) -> bool:
    """Whether rendering could change the text."""
    return any(mark in text for mark in _MARKS)


@define
class _Folder(BaseLoader):
    """Files that templates may include: those of the recipe's folder, links out of it refused."""

    folder: Path
    templates: dict[str, tuple[Template, int]] = Factory(dict)

    def located(self, name: str) -> Path:
        """Raises: SecurityError for a name that leads out of the folder."""
        parts = PurePosixPath(name.replace("\\", "/"))
        root = self.folder.resolve()
        path = (root / parts).resolve() if "\0" not in name else root.parent
        if parts.is_absolute() or ".." in parts.parts or not path.is_relative_to(root):
            raise SecurityError(f"`{name}` is not within the recipe's folder")
        return path

    def source(self, name: str) -> tuple[str, Path]:
        """Raises: TemplateNotFound, SecurityError."""
        path = self.located(name)
        try:
            return read_small_text(path), path
        except FaultyInput as error:
            raise TemplateNotFound(name, f"{name}: {error.faults[0].message}") from error

    def load(
        self,
        environment: Environment,
        name: str,
        globals: object = None,  # noqa: A002, ARG002 - jinja's name; globals are the same for all
    ) -> Template:
        """A file's template, read once and paid for at each use."""
        assert isinstance(environment, MeteredEnvironment)
        if name not in self.templates:
            source, path = self.source(name)
            compiled = environment.compiled(source, name, str(path))
            self.templates[name] = (compiled, len(source))
        template, size = self.templates[name]
        environment.budget.spend(size)
        return template


def _includes(tree: nodes.Template) -> Iterator[tuple[str, int]]:
    """Names of files that are included by a fixed name, with the line."""
    for kind in (nodes.Include, nodes.Extends, nodes.Import, nodes.FromImport):
        for node in tree.find_all(kind):
            name: nodes.Expr = getattr(node, "template")  # noqa: B009 - the four share no type
            for const in (name, *name.find_all(nodes.Const)):
                if isinstance(const, nodes.Const) and isinstance(const.value, str):
                    yield const.value, node.lineno


class RecipeTemplates:
    """The templates of one recipe, compiled once. One thread at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = _Folder(folder)
        self._environment = MeteredEnvironment(self._folder)
        self._compiled: dict[str, Template] = {}

    def asked_by(self, text: str) -> Asked:
        """The variables that the text needs, with the place of each one's first use."""
        variables: dict[str, Spot] = {}
        troubles: list[Trouble] = []
        waiting: list[tuple[str, Path | None]] = [(text, None)]
        seen: set[str] = set()
        while waiting:
            source, file = waiting.pop()
            try:
                included = self._look_at(source, file, variables)
            except _COMPILING as error:
                troubles.append(_trouble(error, file))
                continue
            for name, line in included.items():
                if name in seen:
                    continue
                seen.add(name)
                try:
                    waiting.append(self._folder.source(name))
                except TemplateError as error:
                    troubles.append(Trouble(str(error), Spot(line, file)))
        return Asked(variables, tuple(troubles))

    def _look_at(
        self, source: str, file: Path | None, variables: dict[str, Spot]
    ) -> dict[str, int]:
        """Add the variables of one source; what it includes by a fixed name, with the line."""
        tree = self._environment.parse(source)
        names = meta.find_undeclared_variables(tree) - set(self._environment.globals)
        for node in tree.find_all(nodes.Name):
            if node.name in names and node.ctx == "load":
                variables.setdefault(node.name, Spot(node.lineno, file))
        if file is None:
            self._template(source)
        return dict(_includes(tree))

    def _template(self, text: str) -> Template:
        if text not in self._compiled:
            self._compiled[text] = self._environment.compiled(text, None, _TEXT)
        return self._compiled[text]

    def begin(self) -> None:
        """Start one item's rendering: all its texts share one budget."""
        self._environment.budget = Budget()

    def rendered(self, text: str, variables: Mapping[str, object]) -> str | Trouble:
        """What the text says with these variables."""
        try:
            said = "".join(self._template(text).generate(variables))
        except _COMPILING as error:
            return _trouble(error, None)
        except _RENDERING as error:
            return _trouble(error, None)
        odd = UNFIT.search(said)
        if odd is not None:
            return Trouble(f"template: prints U+{ord(odd.group()):04X}, which is no text", Spot(1))
        return said


def _trouble(error: BaseException, file: Path | None) -> Trouble:
    """The message and the innermost line of a template that the error passed through."""
    if isinstance(error, TemplateSyntaxError):
        return Trouble(f"template: {_worded(str(error.message))}", Spot(error.lineno, file))
    spot = Spot(1, file)
    for frame, line in traceback.walk_tb(error.__traceback__):
        name = frame.f_code.co_filename
        if name == _TEXT:
            spot = Spot(line)
        elif "__jinja_template__" in frame.f_globals or "jinja2" in frame.f_globals:
            spot = Spot(line, Path(name))
    absurd = isinstance(error, SyntaxError | RecursionError | MemoryError)
    message = "nests too deep" if absurd else _worded(str(error))
    return Trouble(f"template: {message or type(error).__name__}", spot)


def _worded(message: str) -> str:
    if message.startswith("Range too big"):
        return "a range of more than 100,000 numbers is refused"
    if "comment tag" in message:
        return "`{#` begins a comment that never ends; {{ '{#' }} prints it"
    return message[:1].lower() + message[1:].rstrip(".")
