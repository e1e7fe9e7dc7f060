"""Where recipes are: the path that the user names, else one that is bundled.

Bundled recipes lie in `recipes/` of a checkout and in `share/harness-batch/recipes` of an
installation. Where that is depends on how it was installed: beside the packages (`--target`), in
the environment's prefix, in the user's base, or where the installer's own record says.
"""

import site
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from harness_batch.errors import UsageError
from harness_batch.words import nearest

_SHARED = Path("share/harness-batch/recipes")
_SAMPLE = Path("samples/fix-failing-test")
_NO_PROMPT = (
    "; a task is written into a recipe, with what it may do: `harness-batch init --recipe FILE`"
    " begins one, and FILE with `prompt: ...` is the least"
)


def find_recipe(word: str, cwd: Path) -> Path:
    """The recipe file that the word names: a path (from `cwd`), else a bundled recipe.

    Raises: UsageError that lists what is bundled.
    """
    path = Path(word)
    if (cwd / path).is_file():
        return path if cwd == Path.cwd() else cwd / path
    bundled = bundled_recipes()
    if word in bundled:
        return bundled[word]
    names = ", ".join(sorted(bundled)) or "none was found"
    why = "it is no file" if (cwd / path).exists() else "no such file"
    told = f"no recipe `{word}`: {why}, and bundled are: {names}"
    raise UsageError(told + (_NO_PROMPT if " " in word else nearest(word, bundled)))


def bundled_recipes() -> dict[str, Path]:
    """The bundled recipes by name."""
    folder = _folder()
    return {} if folder is None else {file.stem: file for file in sorted(folder.glob("*.yaml"))}


def sample_project() -> Path:
    """The folder of the sample project that `fix-failing-test` mends.

    Raises: UsageError when the installation has none.
    """
    folder = _folder()
    if folder is None or not (folder / _SAMPLE).is_dir():
        raise UsageError("this installation of harness-batch has no sample project")
    return folder / _SAMPLE


def _folder() -> Path | None:
    return next((folder for folder in _candidates() if (folder / _SAMPLE).is_dir()), None)


def _candidates() -> Iterator[Path]:
    root = Path(__file__).resolve().parents[2]
    if root.name == "runner":  # a checkout, also one that is installed editable
        yield root.parent / "recipes"
    yield root / _SHARED
    yield from _recorded()
    yield Path(sys.prefix) / _SHARED
    yield Path(site.getuserbase()) / _SHARED


def _recorded() -> Iterator[Path]:
    try:
        files = metadata.files("harness-batch") or []
    except metadata.PackageNotFoundError:
        return
    for file in files:
        if file.parent.as_posix().endswith(_SHARED.as_posix()):
            yield Path(str(file.locate())).resolve().parent
            return
