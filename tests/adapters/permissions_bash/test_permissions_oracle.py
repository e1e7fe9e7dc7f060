"""An independent shell parser (shfmt) must find no command that ours does not ask for."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_batch.permissions.shell import ShellPlace, asks_of
from permissions_cases import PAYLOADS, PLAIN

SHFMT = shutil.which("shfmt", path=str(Path(sys.executable).parent)) or shutil.which("shfmt")
PLACE = ShellPlace(Path("/w"), Path("/w"))

pytestmark = pytest.mark.skipif(SHFMT is None, reason="shfmt is not installed")


def literal(word: dict[str, Any]) -> str | None:
    """The value of a word of shfmt's tree; None when it holds expansions."""
    text = ""
    for part in word["Parts"]:
        match part["Type"]:
            case "Lit":
                text += re.sub(r"\\(.)", r"\1", part["Value"])
            case "SglQuoted":
                text += part.get("Value", "")
            case "DblQuoted" if all(piece["Type"] == "Lit" for piece in part.get("Parts", [])):
                text += "".join(piece["Value"] for piece in part.get("Parts", []))
            case _:
                return None
    return text


def calls(tree: object) -> Iterator[str | None]:
    """Names of the simple commands of a tree."""
    if isinstance(tree, list):
        for each in tree:
            yield from calls(each)
    elif isinstance(tree, dict):
        if tree.get("Type") == "CallExpr" and tree.get("Args"):
            yield literal(tree["Args"][0])
        for each in tree.values():
            yield from calls(each)


def commands_by_shfmt(script: str) -> set[str | None] | None:
    """What shfmt finds; None when it is no script to it."""
    done = subprocess.run(
        [str(SHFMT), "--to-json", "-ln", "bash"],
        input=script.encode(),
        capture_output=True,
        check=False,
    )
    return set(calls(json.loads(done.stdout))) if done.returncode == 0 else None


def commands_by_us(script: str) -> set[str | None] | None:
    """What we ask for; None when a part of it is undecidable."""
    asks = [ask for ask in asks_of(script, PLACE) if ask.permission == "bash"]
    if any(ask.undecidable for ask in asks):
        return None
    return {ask.pattern.partition(" ")[0] for ask in asks}


def agree(script: str) -> None:
    """Where both read the script, ours has every command that the other has."""
    ours = commands_by_us(script)
    if ours is None:
        return
    theirs = commands_by_shfmt(script)
    assert theirs is not None, "bash would refuse it, and we read it"
    assert theirs - {"["} <= ours


def test_every_command_of_the_tables_is_seen() -> None:
    for script in (*PLAIN, *PAYLOADS):
        agree(script)


NAMES = st.sampled_from(["a", "b", "c", "'d'", '"e"', "f\\g"])
WORDS = st.sampled_from(
    [
        "x",
        "-y",
        "'p q'",
        '"r $s"',
        "$t",
        "${u:-v}",
        "a\\ b",
        "w=1",
        "*.c",
        "$'\\n'",
        "{}",
        "''",
        "#z",
    ]
)


def compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Scripts around scripts."""
    two = st.tuples(inner, inner)
    return st.one_of(
        two.map("; ".join),
        two.map("\n".join),
        two.map(" && ".join),
        two.map(" || ".join),
        two.map(" | ".join),
        two.map(" & ".join),
        inner.map("( {} )".format),
        inner.map("{{ {}\n}}".format),
        inner.map("! {}".format),
        inner.map("a $({})".format),
        inner.map('b "x $({}) y"'.format),
        inner.map("c <({})".format),
        inner.map("for i in 1 $t; do {}\ndone".format),
        two.map(lambda both: f"if {both[0]}\nthen {both[1]}\nfi"),
        two.map(lambda both: f"while {both[0]}; do {both[1]}\ndone"),
        inner.map("case $x in y) {};; *) b;; esac".format),
        inner.map("f() {{ {}\n}}".format),
        inner.map("{} > out 2>&1".format),
        inner.map("cat <<E\n$x $({}) y\nE".format),
        inner.map("{} # d\n".format),
    )


SIMPLE = st.tuples(NAMES, st.lists(WORDS, max_size=3)).map(
    lambda each: " ".join([each[0], *each[1]])
)


@settings(max_examples=80, deadline=None)
@given(st.recursive(SIMPLE, compound, max_leaves=6))
def test_every_command_of_a_generated_script_is_seen(script: str) -> None:
    agree(script)
