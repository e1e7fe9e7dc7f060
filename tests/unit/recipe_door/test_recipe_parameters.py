"""Parameters: typed by their declaration, all faults at once."""

from pathlib import Path

import pytest

from harness_batch.errors import FaultyInput
from harness_batch.recipe.door import RecipeSource, open_recipe

DECLARED = """
prompt: "{{ text }}{{ count }}{{ flag }}{{ day }}{{ content }}{{ choice }}{{ extra }}"
parameters:
  - {key: text, input_type: string, requirement: user_prompt}
  - {key: count, input_type: number, default: 0}
  - {key: flag, input_type: boolean, default: false}
  - {key: day, input_type: date, default: "2030-01-31"}
  - {key: content, input_type: file, requirement: optional}
  - {key: choice, input_type: select, options: [a, b, 3, true], default: a}
  - {key: extra, default: ""}
"""


def source_of(folder: Path, text: str = DECLARED) -> RecipeSource:
    file = folder / "r.yaml"
    file.write_text(text)
    return open_recipe(file)


def test_defaults_are_typed_and_0_and_false_are_values(tmp_path: Path) -> None:
    source = source_of(tmp_path)
    assert source.values({"text": "x"}) == {
        "text": "x",
        "count": 0,
        "flag": False,
        "day": "2030-01-31",
        "content": "",
        "choice": "a",
        "extra": "",
    }
    assert source.declared == {"text", "count", "flag", "day", "content", "choice", "extra"}
    assert source.warnings == ()


@pytest.mark.parametrize(
    ("key", "given", "value"),
    [
        ("text", "", ""),
        ("text", "5", "5"),
        ("text", 5, "5"),
        ("text", True, "true"),
        ("text", "{{ x }}", "{{ x }}"),
        ("count", "7", 7),
        ("count", " -7 ", -7),
        ("count", "0.50", 0.5),
        ("count", "1e3", 1000.0),
        ("count", 2.5, 2.5),
        ("flag", "TRUE", True),
        ("flag", "false", False),
        ("flag", False, False),
        ("day", "2028-02-29", "2028-02-29"),
        ("choice", "3", "3"),
        ("choice", True, "true"),
    ],
)
def test_given_values_are_parsed_by_their_type(
    key: str, given: object, value: object, tmp_path: Path
) -> None:
    found = source_of(tmp_path).values({"text": "x", key: given})[key]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("key", "given", "told"),
    [
        ("count", "seven", 'must be a number, not the text "seven"'),
        ("count", "nan", 'must be a number, not the text "nan"'),
        ("count", "1e999", 'must be a number, not the text "1e999"'),
        ("count", True, "must be a number, not true"),
        ("count", "", "must be a number, not an empty text"),
        ("flag", "yes", 'must be true or false, not the text "yes"'),
        ("flag", 1, "must be true or false, not the number 1"),
        ("day", "31.01.2030", 'must be a date such as 2030-12-31, not the text "31.01.2030"'),
        ("day", "2030-02-30", "must be a date"),
        ("choice", "aa", 'must be one of a, b, 3, true, not the text "aa"'),
        ("content", "no/such.txt", "names a file that cannot be used: no/such.txt: no such file"),
        ("content", "", "must be the path of a file, not an empty text"),
        ("text", ["a"], "must be a text, a number or true or false, not a list"),
        ("text", None, "must be a text, a number or true or false, not null"),
        ("text", "a\0b", "holds a character that is no text"),
        ("text", "\udcff", "holds a character that is no text"),
    ],
)
def test_a_wrong_value_is_told_at_its_declaration(
    key: str, given: object, told: str, tmp_path: Path
) -> None:
    source = source_of(tmp_path)
    with pytest.raises(FaultyInput) as caught:
        source.values({"text": "x", key: given})
    (fault,) = caught.value.faults
    assert fault.message.startswith(f"the parameter `{key}` {told}")
    assert fault.line == 4 + sorted(source.declared, key=DECLARED.index).index(key)


def test_a_file_parameter_gives_the_content_from_the_folder_of_the_invocation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "notes.txt").write_text("one\n{{ two }}\n")
    monkeypatch.chdir(tmp_path / "work")
    source = source_of(tmp_path)
    values = source.values({"text": "x", "content": "notes.txt"})
    assert values["content"] == "one\n{{ two }}\n"
    assert source.rendered(values).prompt == "x0false2030-01-31one\n{{ two }}\na"
    with (tmp_path / "large").open("wb") as stream:
        stream.truncate(1_000_001)
    with pytest.raises(FaultyInput, match=r"large: is 1,000,001 bytes long"):
        source.values({"text": "x", "content": str(tmp_path / "large")})


def test_all_that_is_missing_or_wrong_is_told_at_once(tmp_path: Path) -> None:
    text = (
        "prompt: '{{ a }}{{ b }}{{ c }}'\nparameters:\n- {key: a}\n"
        "- {key: b, requirement: user_prompt}\n- {key: c, input_type: number}\n"
    )
    with pytest.raises(FaultyInput) as caught:
        source_of(tmp_path, text).values({"c": "x", "A": "typo"})
    assert [(fault.line, fault.message) for fault in caught.value.faults] == [
        (3, "the parameter `a` is required; give it with `-p a=...`; was it meant by `A`?"),
        (4, "the parameter `b` is required; give it with `-p b=...`"),
        (5, 'the parameter `c` must be a number, not the text "x"'),
    ]


def test_a_parameter_under_a_near_name_is_pointed_to(tmp_path: Path) -> None:
    source = source_of(tmp_path, "prompt: '{{ package }}'\nparameters: [{key: package}]\n")
    with pytest.raises(FaultyInput, match="was it meant by `pkage`"):
        source.values({"pkage": "x"})


def test_unused_parameters_and_useless_defaults_are_warnings(tmp_path: Path) -> None:
    text = (
        "prompt: '{{ b }}'\nparameters:\n- {key: a, default: x}\n"
        "- {key: b, requirement: required, default: y}\n"
    )
    source = source_of(tmp_path, text)
    assert [(w.line, w.severity, w.message) for w in source.warnings] == [
        (3, "warning", "the parameter `a` is declared and never used"),
        (4, "warning", "the `default` of the required parameter `b` is never used"),
    ]
    with pytest.raises(FaultyInput, match="the parameter `b` is required"):
        source.values({})
