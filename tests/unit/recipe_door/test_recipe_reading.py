"""Reading recipe files: what is refused before and while it is read, and where values stand."""

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness_batch.errors import Fault, FaultyInput
from harness_batch.recipe.door import open_recipe
from harness_batch.recipe.json_text import read_json
from harness_batch.recipe.yaml_text import read_yaml


def refusal(folder: Path, data: bytes, name: str = "r.yaml") -> str:
    file = folder / name
    file.write_bytes(data)
    with pytest.raises(FaultyInput) as caught:
        open_recipe(file)
    return str(caught.value).replace(f"{file}", "r")


BYTES = [
    (b"", "r:1:1: the file is empty; a recipe needs at least a `prompt`"),
    (b"\xef\xbb\xbf", "r:1:1: the file is empty; a recipe needs at least a `prompt`"),
    (b"prompt: a\ntitle: \xff\n", "r:2:8: byte 0xff is not UTF-8; save the file as UTF-8"),
    ("prompt: a\n".encode("utf-16"), "r: is UTF-16; save it as UTF-8"),
    (b"prompt: a\n\0", "r:2:1: a NUL U+0000 does not belong in a text file"),
    (b"prompt: \x1b[0m", "r:1:9: the control character U+001B does not belong in a text file"),
    (b"prompt: " + b"[" * 100_000, "r:1:1008: nested deeper than 64 levels"),
    (b"- " * 100_000, "r:1:131: nested deeper than 64 levels"),
    (b"x-a: [" + b"1," * 50_001 + b"]", "r:1:100003: more than 50000 values"),
]


@pytest.mark.parametrize(("data", "told"), BYTES)
def test_bytes_that_are_no_recipe_are_one_clear_fault(
    data: bytes, told: str, tmp_path: Path
) -> None:
    assert refusal(tmp_path, data).startswith(told)


def test_a_byte_order_mark_and_windows_line_ends_are_read_over(tmp_path: Path) -> None:
    file = tmp_path / "r.yml"
    file.write_bytes(b"\xef\xbb\xbfprompt: a\r\ntitle: b\r\n")
    source = open_recipe(file)
    assert source.document == {"prompt": "a", "title": "b"}
    assert source.place("title") == (2, 8)


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "r.yaml"
    with file.open("wb") as stream:
        stream.write(b"prompt: a\n#")
        stream.truncate(50_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(FaultyInput, match="is 50,000,000 bytes long; more than 1,000,000"):
            open_recipe(file)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "folder.yaml").mkdir()
    for name in ("pipe.yaml", "folder.yaml"):
        with pytest.raises(FaultyInput, match="is not a regular file"):
            open_recipe(tmp_path / name)
    with pytest.raises(FaultyInput, match="no such file"):
        open_recipe(tmp_path / "none.yaml")
    with pytest.raises(FaultyInput, match=r"a recipe's name ends in \.yaml, \.yml, \.json"):
        open_recipe(tmp_path / "recipe.toml")


def test_an_alias_bomb_is_stopped_while_it_is_small(tmp_path: Path) -> None:
    lines = ["x-0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"]
    lines += [f"x-{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    told = refusal(tmp_path, "\n".join(lines).encode())
    assert "more than 50000 values (an alias counts as what it stands for)" in told


def test_aliases_are_copies(tmp_path: Path) -> None:
    reading = read_yaml("a: &x {b: [1]}\nc: *x\n", tmp_path)
    reading.value["a"]["b"].append(2)
    assert reading.value["c"] == {"b": [1]}


def test_yaml_1_2_words_and_numbers(tmp_path: Path) -> None:
    text = (
        "a: [on, yes, no, off, y, true, False, ~, null, "
        "0o17, 0x1F, 017, 1e3, .5, 1_000, 12:30, =]\n"
        "b: [!!str 5, !!int '7', ! 8, '9', 2030-01-01, -0, +1, 1.]\n"
        "on: x\n1: y\n"
    )
    value = read_yaml(text, tmp_path).value
    assert value["a"] == [
        *("on", "yes", "no", "off", "y", True, False, None, None),
        *(15, 31, 17, 1000.0, 0.5, "1_000", "12:30", "="),
    ]
    assert value["b"] == ["5", 7, "8", "9", "2030-01-01", 0, 1, 1.0]
    assert (value["on"], value["1"]) == ("x", "y")


def test_json_is_read_as_json_with_its_places(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    long_key = "k" * 2000
    text = (
        f'{{\n\t"prompt": "tab\\tslash\\/pair\\ud83d\\ude00",\n\t"x-{long_key}": 1E5, "titlle":1}}'
    )
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FaultyInput) as caught:
        open_recipe(file)
    column = len(f'\t"x-{long_key}": 1E5, ') + 1
    assert [str(fault) for fault in caught.value.faults] == [
        f"{file}:3:{column}: unknown key `titlle`; did you mean `title`?"
    ]
    assert read_json(text, file).value["prompt"] == "tab\tslash/pair\U0001f600"


BAD_JSON = [
    ('{"prompt": "a",}', "r:1:16: is no JSON: a key in double quotes is expected here"),
    ('{"prompt" "a"}', "r:1:11: is no JSON: `:` is expected here"),
    ('{"prompt": a}', "r:1:12: is no JSON: a value is expected here"),
    ('{"prompt": "a"', "r:1:15: is no JSON: `,` or `}` is expected here"),
    ('{"prompt": "a"} x', "r:1:17: is no JSON: nothing may follow the document"),
    ('{"prompt": "a', "r:1:12: is no JSON: unterminated string starting at"),
    ('{"prompt": "a", "prompt": "b"}', "r:1:17: the key `prompt` is there twice, first in line 1"),
    ('{"prompt": "\\ud800"}', "r:1:12: U+D800 is no character of a text"),
    ('{"prompt": "a", "limits": {"steps": 1e999}}', "r:1:37: `1e999` is not a finite number"),
    ("[1]", "r:1:1: a recipe is a mapping of keys to values, not a list"),
    ("", "r:1:1: the file is empty; a recipe needs at least a `prompt`"),
    ("[" * 5000, "r:1:66: nested deeper than 64 levels"),
]


@pytest.mark.parametrize(("text", "told"), BAD_JSON)
def test_bad_json_is_told_with_its_place(text: str, told: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, text.encode(), "r.json") == told


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('abc\t"\\é😀 '), inner),
    max_leaves=20,
)


@settings(max_examples=50)
@given(JSON_VALUES, st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_every_json_document_reads_as_the_standard_library_reads_it(
    value: Any, escaped: bool, indent: int | str | None
) -> None:
    text = json.dumps(value, ensure_ascii=escaped, indent=indent)
    reading = read_json(text, Path("x.json"))
    assert reading.value == json.loads(text)
    assert reading.faults == []


@settings(max_examples=50)
@given(JSON_VALUES)
def test_every_place_points_to_its_value(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=1)
    lines = text.split("\n")
    for trail, place in read_json(text, Path("x.json")).places.items():
        found = value
        for step in trail:
            found = found[step]
        here = "\n".join([lines[place.line - 1][place.column - 1 :], *lines[place.line :]])
        assert json.JSONDecoder().raw_decode(here)[0] == found


PIECES = st.sampled_from(
    [
        *(b"prompt: ", b"{{ a }}", b"{% if %}", b"model: ", b"a/b", b"\n", b"  ", b"- ", b"&a "),
        *(b"*a", b"{", b"}", b"[", b"]", b": ", b", ", b"'", b'"', b"|\n", b"!!", b"? ", b"\t"),
        *(b"limits:\n  steps: ", b"matrix: {a: [1]}\n", b"parameters:\n- key: a\n", b"<<: *a\n"),
        *(b"#", b"\xff"),
    ]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(
    st.binary(max_size=200) | st.lists(PIECES, max_size=25).map(b"".join),
    st.sampled_from(["r.yaml", "r.json"]),
)
def test_any_bytes_give_a_recipe_or_its_faults(tmp_path: Path, data: bytes, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    faults: tuple[Fault, ...] | None = None
    try:
        open_recipe(file)
    except FaultyInput as error:
        faults = error.faults
    assert faults is None or (faults and all(map(str, faults)))
