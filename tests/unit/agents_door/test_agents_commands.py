"""Commands: the template alone says what is read and what is run; arguments never do."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_batch.agents.commands import Unfit, load_commands, opening
from harness_batch.agents.record import Attached, Command, OpeningPart, Printed, Words
from harness_batch.errors import Fault
from memory_shelf import MemoryShelf


def command(template: str) -> Command:
    return Command(name="do", template=template, file=Path("/c/do.md"))


def taken(template: str, arguments: str = "") -> tuple[OpeningPart, ...] | Unfit:
    return opening(command(template), arguments)


@pytest.mark.parametrize(
    ("template", "arguments", "text"),
    [
        ("Fix $ARGUMENTS.", "a  'b c'", "Fix a  'b c'."),
        ("$1 and $2, $3!", "a 'b c'", "a and b c, !"),
        ("$1", "it's", "it's"),
        ("$10 $0 $ARGUMENTSX $x $$1", "a", "$10 $0 $ARGUMENTSX $x $a"),
        ("Fix it.", "all of it", "Fix it.\n\nall of it"),
        ("Fix it.", "", "Fix it."),
        ("mail ann@example.org, `@x` and @@y", "", "mail ann@example.org, `@x` and @@y"),
        ("an open !`tick", "", "an open !`tick"),
    ],
)
def test_arguments_are_put_in_their_places(template: str, arguments: str, text: str) -> None:
    assert taken(template, arguments) == (Words(text),)


def test_files_and_shell_output_are_parts() -> None:
    assert taken("See @src/a.py. Log:\n!`git log -1 $1`\nEnd @$2", "main b.txt") == (
        Words("See "),
        Attached("src/a.py", "@src/a.py"),
        Words(". Log:\n"),
        Printed("git log -1 main"),
        Words("\nEnd "),
        Attached("b.txt", "@b.txt"),
    )


@pytest.mark.parametrize(
    "arguments",
    ["!`rm -rf .`", "@.env", "$(id)", "$1 $ARGUMENTS", "`id`", "a\n!`id`\n@/etc/passwd"],
)
def test_arguments_are_never_read_or_run_by_themselves(arguments: str) -> None:
    for template in ("Fix $ARGUMENTS", "Fix $1", "Fix"):
        parts = taken(template, arguments)
        assert isinstance(parts, tuple)
        assert all(isinstance(part, Words) for part in parts)


@pytest.mark.parametrize(
    "word",
    ["; id", "$(id)", "`id`", "a|b", "a&b", "a>b", "<a", "a*", "?", "{a,b}", "~", "'", '"', "\\",
     "-rf", "--output=x", "A=b", "a\nb", "é", "#", "!", "^", "(a)", ""],
)  # fmt: skip
def test_only_plain_words_go_into_a_shell_command(word: str) -> None:
    import shlex

    parts = taken('!`grep "$1" .`', shlex.quote(word))
    assert isinstance(parts, Unfit)
    assert "/do: $1 stands in a shell command" in parts.reason


@given(st.text(max_size=40))
def test_whatever_the_arguments_a_script_holds_only_plain_ones(arguments: str) -> None:
    parts = taken("!`cat $1`", arguments)
    if isinstance(parts, tuple):
        assert [type(part) for part in parts] == [Printed]
        (script,) = (part.script for part in parts if isinstance(part, Printed))
        assert set(script.removeprefix("cat ")) <= set(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+,-"
        )


def load(files: dict[str, str], *, trusted: bool = True) -> tuple[dict[str, Command], list[str]]:
    faults: list[Fault] = []
    commands = load_commands([MemoryShelf(files, trusted)], faults, faults.append)
    return commands, [str(fault).removeprefix("/shelf/commands/") for fault in faults]


def test_a_file_is_a_command_with_or_without_a_head() -> None:
    commands, faults = load(
        {
            "commands/a.md": "---\ndescription: D\nagent: plan\nmodel: p/m\n---\nDo $1.\n",
            "commands/b.md": "Just do.\n",
        }
    )
    assert faults == []
    assert (commands["a"].agent, commands["a"].model, commands["a"].template) == (
        "plan", "p/m", "Do $1.",
    )  # fmt: skip
    assert commands["b"].template == "Just do."


def test_what_is_wrong_with_commands_is_told_with_its_place() -> None:
    _, faults = load(
        {
            "commands/1a.md": "x",
            "commands/b.md": "---\nagnet: plan\n---\nx",
            "commands/c.md": "---\nmodel: nothing\n---\n",
            "commands/d.md": "",
            "commands/e f.md": "x",
        }
    )
    assert [fault.split(": ")[0] for fault in faults] == [
        "1a.md", "b.md:2:1", "c.md:2:1", "c.md", "d.md", "e f.md",
    ]  # fmt: skip
