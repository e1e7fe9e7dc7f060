"""The door of model scripts."""

from pathlib import Path

import pytest

from harness_batch.errors import FaultyInput
from harness_batch.models.script_file import MAX_BYTES, ScriptedCall, ScriptedStep, read_script


def script(folder: Path, text: str | bytes) -> Path:
    path = folder / "script.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_script_is_a_list_of_texts_and_calls(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
- text: I look first.
  calls:
    - {name: read, arguments: {file_path: a.py, offset: 3}}
    - name: bash
      arguments: {command: "ls", timeout: 1.5, background: false, description: ~}
- text: |
    Done.
    Really.
- calls:
    - name: todo
- {}
""",
    )
    assert read_script(path) == (
        ScriptedStep(
            "I look first.",
            (
                ScriptedCall("read", {"file_path": "a.py", "offset": 3}),
                ScriptedCall(
                    "bash",
                    {"command": "ls", "timeout": 1.5, "background": False, "description": None},
                ),
            ),
        ),
        ScriptedStep("Done.\nReally.\n", ()),
        ScriptedStep("", (ScriptedCall("todo", {}),)),
        ScriptedStep("", ()),
    )


def test_words_that_older_yaml_takes_for_something_else_stay_words(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        '- calls: [{name: w, arguments: {on: yes, b: off, c: 012, d: 1:30, e: "1", f: 2030-01-0}}]',
    )
    (step,) = read_script(path)
    assert step.calls[0].arguments == {
        "on": "yes", "b": "off", "c": 12, "d": "1:30", "e": "1", "f": "2030-01-0",
    }  # fmt: skip


def test_json_is_a_script_too(tmp_path: Path) -> None:
    path = script(tmp_path, '[{"text": "a", "calls": [{"name": "x", "arguments": {"k": [1]}}]}]')
    assert read_script(path) == (ScriptedStep("a", (ScriptedCall("x", {"k": [1]}),)),)


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", ["the model script is empty"]),
        ("text: a", [":1:1: a model script is a list"]),
        ("- a", [":1:3: an entry is {text, calls}"]),
        (
            "- txt: a\n- calls: [{tool: x}]\n- calls: x",
            [
                ":1:3: unknown key 'txt'",
                ":2:12: unknown key 'tool'",
                ":2:11: the call has no name",
                ":3:10: calls is a list",
            ],
        ),
        ("- text: [a]", [":1:9: text is a text"]),
        ("- text: a\n  text: b", [":2:3: text is there twice"]),
        ("- calls: [{name: x, arguments: [1]}]", [":1:32: arguments is an object"]),
        ("- calls: [{name: x, arguments: {a: 1, a: 2}}]", [":1:39: a is there twice"]),
        ("- text: 'a", [":1:11: not YAML"]),
        ("- {", [":2:1: not YAML"]),
        (b"- text: \xff", ["is not UTF-8"]),
        (b"- text: " + b"a" * MAX_BYTES, ["larger than"]),
        ("- calls: [{name: x, arguments: " + "{a: " * 80 + "1" + "}" * 81 + "]", ["too deep"]),
        ("- calls: [{name: x, arguments: &a {b: *a}}]", ["too deep"]),
    ],
)
def test_every_fault_of_a_script_is_told_with_its_place(
    tmp_path: Path, text: str | bytes, faults: list[str]
) -> None:
    with pytest.raises(FaultyInput) as caught:
        read_script(script(tmp_path, text))
    told = [str(fault) for fault in caught.value.faults]
    assert len(told) == len(faults)
    for line, words in zip(told, faults, strict=True):
        assert line.startswith(str(tmp_path))
        assert words in line


def test_a_script_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FaultyInput, match=r"nothing\.yaml: cannot read the model script"):
        read_script(tmp_path / "nothing.yaml")


def test_an_alias_bomb_is_refused_before_it_unfolds(tmp_path: Path) -> None:
    lines = ["- text: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"- text: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    lines.append("- calls: [{name: x, arguments: {all: *a8}}]")
    with pytest.raises(FaultyInput, match="too large"):
        read_script(script(tmp_path, "\n".join(lines)))
