"""What must hold of the house itself: the map, the promises, sizes, errors, words."""

import ast
import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from inspect import getmembers, isclass
from pathlib import Path

import jsonschema
import pytest

from harness_batch import errors
from markdown_blocks import DOCS, PAGES, ROOT, commands, names, section, tables

PACKAGES = (ROOT / "runner/harness_batch", ROOT / "reports/harness_batch_reports")
MODULES = sorted(path for package in PACKAGES for path in package.rglob("*.py"))
LONG_MODULES = {
    "runner/harness_batch/app/execution.py": "one run from its first event to its last",
    "runner/harness_batch/permissions/shell_wrappers.py": "mostly a table of programs",
}
"""Modules over 300 lines, and why they are not cut."""
LONG_FUNCTIONS = {
    "runner/harness_batch/cli/options.py input_options": "a list of options, one after the other",
}
"""Functions over 40 lines, and why they are not cut."""
CATCH_ALL = {
    "runner/harness_batch/engine/session.py": "a fault in one session must not end the others",
    "runner/harness_batch/models/paced.py": "hands the error to the task that waits for it",
    "runner/harness_batch/cli/main.py": "a fault of ours is exit code 3; Python's own would be 1",
}
"""Modules with one `except Exception`, and why."""
ANYWHERE = (r"(?<![\w./])/w[o]rk/(main|shared)\b", r"/t[m]p/hb\b", r"\bhelper [s]ession")
"""Words of the place where this was made; spelled so that they do not find themselves."""
NUMBERS = (r"(?<![\w&])#[0-9]+\b(?!;)", r"\b[Ii]ssue [0-9]+\b")
"""Numbers of a tracker that readers cannot look up; colours and hostile texts look like them."""
TEXTS = (*PAGES, *(ROOT / f"{name}.md" for name in ("SECURITY", "CHANGELOG", "CONTRIBUTING")))

pytestmark = pytest.mark.skipif(
    not PACKAGES[0].is_dir(), reason="the sources are not beside the tests"
)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def functions(module: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


# ---- the map


def test_the_architecture_page_names_every_module_and_no_other(
    request: pytest.FixtureRequest,
) -> None:
    """`--update-golden` takes lines away, and adds new ones with the module's own promise."""
    page = DOCS / "architecture.md"
    if request.config.getoption("--update-golden"):
        page.write_text(MODULE_TABLE.sub(_redrawn, page.read_text("utf-8")))
    named: set[str] = set()
    for found in MODULE_TABLE.finditer(page.read_text("utf-8")):
        named |= {f"{found['folder']}/{name}" for name in _promises(found["rows"])}
    there = {relative(path) for path in MODULES}
    assert not there - named, f"docs/architecture.md lacks {sorted(there - named)}: {REDRAW}"
    assert not named - there, f"docs/architecture.md names {sorted(named - there)}: {REDRAW}"


MODULE_TABLE = re.compile(
    r"^### `(?P<folder>[^`]+)/`\n(?P<words>[^|]*)\| module \|.*\n\|---.*\n(?P<rows>(?:\|.*\n)+)",
    re.MULTILINE,
)
REDRAW = "pytest tests/test_house.py --update-golden mends it; read the new lines"


def _promises(rows: str) -> dict[str, str]:
    return dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", rows, re.MULTILINE))


def _redrawn(found: re.Match[str]) -> str:
    told = _promises(found["rows"])
    lines = []
    for path in sorted((ROOT / found["folder"]).glob("*.py")):
        promise = (ast.get_docstring(tree(path)) or "").split("\n\n")[0].replace("\n", " ")
        lines.append(
            f"| `{path.name}` | {told.get(path.name, promise.replace('|', chr(92) + '|'))} |"
        )
    return found[0].replace(found["rows"], "\n".join(lines) + "\n")


def test_the_systems_on_the_architecture_page_are_where_it_says() -> None:
    """Each names modules and test files that exist, or is one of the planned ones."""
    (rows,) = tables(section(DOCS / "architecture.md", "## Systems"))
    systems = [system for system, _, _ in rows[1:]]
    assert len(systems) == len(set(systems))
    assert {system for system, *rest in rows[1:] if rest == ["planned", "planned"]} == PLANNED
    for system, modules, tests in rows[1:]:
        if system in PLANNED:
            continue
        assert names(modules), f"{system}: no module"
        assert names(tests), f"{system}: no test"
        for name in names(modules):
            assert (PACKAGES[0] / name).is_file(), f"{system}: {name}"
        for name in names(tests):
            assert "\ndef test_" in _tests_in(name) or "\nasync def test_" in _tests_in(name), (
                f"{system}: {name}"
            )


PLANNED = {
    "memory", "MCP", "language servers", "tag protocol", "roles",
}  # fmt: skip
"""Systems that no module has yet."""


def _tests_in(name: str) -> str:
    path = ROOT / name
    return path.read_text("utf-8") if path.name.startswith("test_") and path.is_file() else ""


def test_the_direction_of_imports_is_told_as_it_is_held() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    told = section(DOCS / "architecture.md", "## Direction of imports")
    words = re.findall(r"[a-z_]+", told.partition("```text")[2].partition("```")[0])
    assert words == [name for layer in layers for name in re.findall(r"[a-z_]+", layer)]


# ---- modules and functions


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_a_module_opens_with_its_promise(path: Path) -> None:
    assert ast.get_docstring(tree(path)), "no docstring at its top"


def test_no_module_is_too_long_but_the_listed_ones() -> None:
    long = {relative(p) for p in MODULES if p.read_text("utf-8").count("\n") > 300}
    assert long - set(LONG_MODULES) == set()


def test_no_function_is_too_long_but_the_listed_ones() -> None:
    long = {
        f"{relative(path)} {function.name}"
        for path in MODULES
        for function in functions(tree(path))
        if (function.end_lineno or 0) - function.lineno >= 40
    }
    assert long - set(LONG_FUNCTIONS) == set()


def test_public_things_have_docstrings() -> None:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    bare = []
    for path in MODULES:
        for node in tree(path).body:
            if isinstance(node, kinds) and not node.name.startswith("_"):
                inner = node.body if isinstance(node, ast.ClassDef) else []
                things = [node, *(n for n in inner if isinstance(n, kinds) and n.name[0] != "_")]
                bare += [f"{relative(path)} {t.name}" for t in things if not ast.get_docstring(t)]
    assert bare == []


def test_imports_are_absolute() -> None:
    relatives = [
        relative(path)
        for path in MODULES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert relatives == []


def test_everything_is_caught_in_the_listed_places_only() -> None:
    found = [
        relative(path)
        for path in MODULES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ExceptHandler) and _catches_all(node)
    ]
    assert sorted(found) == sorted(CATCH_ALL)


def _catches_all(handler: ast.ExceptHandler) -> bool:
    """A bare `except`, or one of Exception or BaseException, that does not raise again."""
    if isinstance(handler.body[-1], ast.Raise):
        return False  # cleaning up and raising again hides nothing
    caught = set(re.findall(r"\w+", ast.unparse(handler.type))) if handler.type else set()
    return not caught or bool(caught & {"Exception", "BaseException"})


# ---- errors


def test_the_tree_drawn_in_errors_is_the_tree_of_classes() -> None:
    drawn: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"((?:[│ ]   )*)(?:[├└]── )?([A-Z]\w+)(?:  |$)", line):
            depth = len(found[1]) // 4 + ("── " in line)
            drawn.append((depth, found[2]))
    told: dict[str, str | None] = {}
    above: dict[int, str] = {}
    for depth, name in drawn:
        told[name] = above[depth - 1] if depth else None
        above[depth] = name
    classes = {
        name: None if error is errors.HarnessError else error.__bases__[0].__name__
        for name, error in getmembers(errors, isclass)
        if issubclass(error, errors.HarnessError)
    }
    assert told == classes


# ---- words


def test_no_word_of_the_place_where_it_was_made() -> None:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    found = []
    for name in filter(None, listed.stdout.decode().split("\0")):
        path = ROOT / name
        text = path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""
        numbered = name.startswith("tests/") or name.endswith((".css", ".min.js"))
        words = ANYWHERE if numbered else (*ANYWHERE, *NUMBERS)
        found += [f"{name}: {hit[0]}" for word in words for hit in re.finditer(word, text)]
    assert found == []


@pytest.mark.parametrize("page", TEXTS, ids=relative)
def test_a_page_has_no_dead_link(page: Path) -> None:
    text = page.read_text("utf-8")
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", TEXTS, ids=relative)
def test_links_within_the_guide_meet_a_heading(page: Path) -> None:
    text = page.read_text("utf-8")
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", text):
        there = (page.parent / target if target else page).read_text("utf-8")
        heads = re.findall(r"^#+ (.+)$", there, re.MULTILINE)
        slugs = {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}
        assert anchor in slugs, f"{target}#{anchor}"


def test_the_changelog_says_what_is_not_released_yet() -> None:
    assert "\n## Unreleased\n" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_test_command_of_the_front_page_is_the_one_that_ci_runs() -> None:
    (line,) = (line for line in commands(ROOT / "README.md") if "-m pytest" in line)
    assert line.partition(".venv/bin/python ")[2] in (ROOT / ".ci/run").read_text("utf-8")


# ---- schemas


@pytest.mark.parametrize(
    "path",
    sorted(path for package in PACKAGES for path in package.rglob("*schema.json")),
    ids=relative,
)
def test_a_schema_of_the_package_is_a_schema(path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text("utf-8")))
