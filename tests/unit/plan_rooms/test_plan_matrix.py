"""The matrix: axes, globs, tables, exclusions, and every fault with its place."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_batch.errors import FaultyInput
from harness_batch.messages import JsonObject
from harness_batch.plan.globs import literal_folder, matching
from harness_batch.plan.inputs import RepoBase
from harness_batch.plan.matrix import rows
from harness_batch.recipe.record import Recipe
from plan_fakes import MemoryFiles, MemorySource

FILES = MemoryFiles(
    (
        "README.md",
        "packages/core/a.py",
        "packages/cli/b.py",
        "packages/.hidden/x.py",
        "packages/notes.md",
        "packages/core/deep/c.py",
    ),
    {"main": ("src/b.py", "src/a.py", "src/b.py")},
)


def rows_of(
    matrix: JsonObject | None, folder: Path = Path("/r"), declared: tuple[str, ...] = ()
) -> tuple[JsonObject, ...]:
    source = MemorySource(
        recipe=Recipe(file=folder / "x.yaml", name="x"),
        matrix=matrix,
        defaults=dict.fromkeys(declared, 1),
        places={("matrix",): (5, 1), ("matrix", "a"): (6, 3), ("matrix", "a", 1): (7, 5)},
    )
    return rows(source, RepoBase(Path("/repo"), "HEAD", "1" * 40), FILES)


def test_without_a_matrix_there_is_one_row() -> None:
    assert rows_of(None) == ({},)


@pytest.mark.parametrize("matrix", [{}, {"a": []}, {"a": [], "b": [1]}, {"exclude": []}])
def test_an_empty_matrix_has_no_rows(matrix: JsonObject) -> None:
    assert rows_of(matrix) == ()


def test_axes_are_multiplied_in_the_order_of_the_file() -> None:
    assert rows_of({"b": [0, False], "a": ["x", 1.5]}) == (
        {"b": 0, "a": "x"},
        {"b": 0, "a": 1.5},
        {"b": False, "a": "x"},
        {"b": False, "a": 1.5},
    )
    assert [list(row) for row in rows_of({"b": [1], "a": [2]})] == [["b", "a"]]


def test_exclusions_take_rows_away_and_tell_false_from_zero() -> None:
    matrix = {"a": [0, False, 1], "b": ["x", "y"], "exclude": [{"a": 0}, {"a": 1, "b": "y"}]}
    assert rows_of(matrix) == (
        {"a": False, "b": "x"},
        {"a": False, "b": "y"},
        {"a": 1, "b": "x"},
    )


def test_included_rows_come_last_in_the_order_of_the_axes() -> None:
    matrix = {"a": [1], "b": [2], "include": [{"extra": "e", "b": 4, "a": 3}]}
    found = rows_of(matrix)
    assert found == ({"a": 1, "b": 2}, {"a": 3, "b": 4, "extra": "e"})
    assert list(found[1]) == ["a", "b", "extra"]
    assert rows_of({"include": [{"z": 1}]}) == ({"z": 1},)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("packages/*", ["packages/cli", "packages/core", "packages/notes.md"]),
        ("packages/*/", ["packages/cli", "packages/core"]),
        ("packages/*.md", ["packages/notes.md"]),
        ("./packages/c?i", ["packages/cli"]),
        ("packages/[!a-k]*", ["packages/notes.md"]),
        ("packages/.*/", ["packages/.hidden"]),
        ("**/*.py", ["packages/cli/b.py", "packages/core/a.py", "packages/core/deep/c.py"]),
        (
            "packages/core/**",
            ["packages/core/a.py", "packages/core/deep", "packages/core/deep/c.py"],
        ),
        ("nothing/*", []),
        ("packages/[+--c]*/", ["packages/cli", "packages/core"]),
        ("packages/[c&&]*/", ["packages/cli", "packages/core"]),
        ("packages/[[~~||c]*/", ["packages/cli", "packages/core"]),
    ],
)
def test_a_glob_gives_paths_of_the_repository(pattern: str, expected: list[str]) -> None:
    assert [row["p"] for row in rows_of({"p": {"glob": pattern}})] == expected


def test_files_changed_since_a_ref_are_an_axis() -> None:
    found = rows_of({"f": {"files_changed_since": "main"}})
    assert found == ({"f": "src/a.py"}, {"f": "src/b.py"})


def test_rows_of_the_history_are_items() -> None:
    assert rows_of({"include": {"query": "FROM failures"}}) == (
        {"item": "a", "times": 2},
        {"item": "b", "times": 1.5},
    )


def test_csv_rows_are_text_and_json_rows_keep_their_types(tmp_path: Path) -> None:
    (tmp_path / "i.csv").write_bytes(b'\xef\xbb\xbfname, n\r\n"a,b",1\r\n\r\n"two\nlines",\r\n')
    assert rows_of({"include": {"csv": "i.csv"}}, tmp_path) == (
        {"name": "a,b", "n": "1"},
        {"name": "two\nlines", "n": ""},
    )
    (tmp_path / "i.json").write_text('[{"n": 0, "ok": false}, {"n": 1.5}]')
    assert rows_of({"include": {"json": "i.json"}}, tmp_path) == (
        {"n": 0, "ok": False},
        {"n": 1.5},
    )
    (tmp_path / "empty.csv").write_text("")
    assert rows_of({"include": {"csv": "empty.csv"}}, tmp_path) == ()


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        ({"a": "x"}, "6:3: axis 'a' must be a list of values"),
        ({"a": {"glob": 1}}, "axis 'a' must be a list of values"),
        ({"a": {"glob": "x", "more": 1}}, "axis 'a' must be a list of values"),
        ({"a": [1, None]}, "7:5: axis 'a' holds None"),
        ({"a": [1, [2]]}, "7:5: axis 'a' holds [2]"),
        ({"a": [float("nan")]}, "axis 'a' holds nan"),
        ({"a": ["x", "x"]}, "7:5: axis 'a' holds 'x' twice"),
        ({"a": [1, "1"]}, "axis 'a' holds '1' twice"),
        ({"a": [True, "true"]}, "axis 'a' holds 'true' twice"),
        ({"a": {"glob": "../x"}}, "must stay inside the repository"),
        ({"a": {"glob": "/etc/*"}}, "must stay inside the repository"),
        ({"a": {"glob": "/"}}, "must stay inside the repository"),
        ({"a": {"glob": "x/[z-a]"}}, "is no glob"),
        ({"a": {"files_changed_since": "nope"}}, "unknown revision 'nope'"),
        ({"a-b": [1]}, "'a-b' cannot be a variable"),
        ({"p": [1]}, "'p' is a parameter, too"),
        ({"recipe_dir": [1]}, "'recipe_dir' is always there"),
        ({"include": [{"p": 1}]}, "'p' is a parameter, too"),
        ({"a": [1], "exclude": {"a": 1}}, "exclude must be a list"),
        ({"a": [1], "exclude": [1]}, "exclude must be a list"),
        ({"alpha": [1], "exclude": [{"alfa": 1}]}, "no axis `alfa`; did you mean `alpha`?"),
        ({"include": {"query": "NONSENSE"}}, "include: query: the history refuses NONSENSE"),
        (
            {"include": {"xml": "x"}},
            "include must be a list of rows, {csv: FILE}, {json: FILE} or {query: SQL}",
        ),
        ({"include": [3]}, "include: row 1 must be a mapping"),
        ({"include": [{"a": [1]}]}, "include: row 1: 'a' must be text, a number"),
        ({"include": {"csv": "gone.csv"}}, "gone.csv: cannot be read: No such file"),
        ({"a": list(range(400)), "b": list(range(400))}, "has 160,000 rows, more than 100,000"),
    ],
)
def test_bad_declarations_say_what_and_where(matrix: JsonObject, expected: str) -> None:
    with pytest.raises(FaultyInput) as caught:
        rows_of(matrix, declared=("p",))
    assert expected in str(caught.value)
    assert all(fault.line for fault in caught.value.faults)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("t.csv", b"a,b\n1\n", "line 2: has 1 cells, the header 2"),
        ("t.csv", b"a,a\n1,2\n", "line 1: every column needs a name of its own"),
        ("t.csv", b"a,\n1,2\n", "line 1: every column needs a name of its own"),
        ("t.csv", b'a\n"x"y\n', "line 2"),
        ("t.csv", b"a\n\xff\n", "is not UTF-8"),
        ("t.json", b"{}", "must hold a list"),
        ("t.json", b"[{}]", "row 1 must be a mapping of variables"),
        ("t.json", b'[\n{"a": ]', "line 2"),
        ("t.json", b'[{"a": NaN}]', "NaN is not a number"),
        ("t.json", b'[{"a": null}]', "'a' must be text"),
        ("t.json", b"[" * 100_000, "nested too deep"),
    ],
)
def test_bad_tables_say_what_and_where(
    tmp_path: Path, name: str, content: bytes, expected: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FaultyInput) as caught:
        rows_of({"include": {name[2:]: name}}, tmp_path)
    assert expected in str(caught.value)


def test_all_faults_of_a_matrix_are_told_at_once() -> None:
    with pytest.raises(FaultyInput) as caught:
        rows_of({"a": 1, "b": [None], "exclude": 3, "include": 4})
    assert len(caught.value.faults) == 4


@settings(deadline=None)
@given(
    axes=st.dictionaries(
        st.sampled_from("abcd"), st.lists(st.integers(0, 20), unique=True, max_size=4), min_size=1
    )
)
def test_every_combination_comes_exactly_once(axes: dict[str, list[int]]) -> None:
    found = rows_of(axes)
    count = 1
    for values in axes.values():
        count *= len(values)
    assert len(found) == count == len({json.dumps(row) for row in found})


@settings(deadline=None)
@given(
    st.text(alphabet="ab./*?[]!^-\\", max_size=8), st.text(alphabet="ab./", min_size=1, max_size=8)
)
def test_a_glob_never_matches_outside_its_literal_folder(pattern: str, path: str) -> None:
    clean = "/".join(part for part in path.split("/") if part not in {"", ".", ".."})
    try:
        found = matching(pattern, [clean] if clean else [])
    except ValueError:
        return
    under = "/".join(part for part in literal_folder(pattern).split("/") if part != ".")
    assert all(not under or match.startswith(f"{under}/") for match in found)
