"""What is left of a long output, and that the rest is never lost."""

from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness_batch.tools.protocol import ToolResult
from harness_batch.tools.truncation import MAX_BYTES, MAX_LINES, cut_middle, safe_name, shorten

Keep = Literal["head", "tail"]


def test_a_short_output_is_left_alone_and_nothing_is_written(tmp_path: Path) -> None:
    text = "a\n" * MAX_LINES

    assert shorten(ToolResult(output=text), tmp_path, "c") == text
    assert list(tmp_path.iterdir()) == []


def test_the_head_is_kept_and_the_whole_is_in_the_named_file(tmp_path: Path) -> None:
    text = "\n".join(f"line {n}" for n in range(5000))

    said = shorten(ToolResult(output=text), tmp_path, "call_1")

    assert said.startswith("line 0\nline 1\n")
    assert "line 4999" not in said
    assert str(tmp_path / "call_1.txt") in said.splitlines()[-1]
    assert (tmp_path / "call_1.txt").read_text() == text


def test_the_tail_is_kept_where_the_tool_says_so(tmp_path: Path) -> None:
    text = "\n".join(f"line {n}" for n in range(5000))

    said = shorten(ToolResult(output=text, keep="tail"), tmp_path, "call_1")

    assert said.endswith("\nline 4998\nline 4999")
    assert "line 100\n" not in said
    assert str(tmp_path / "call_1.txt") in said.splitlines()[0]


@pytest.mark.parametrize("keep", ["head", "tail"])
def test_a_single_long_line_is_cut_in_its_middle(tmp_path: Path, keep: Keep) -> None:
    text = "<" + "x" * 10_000_000 + ">"

    said = shorten(ToolResult(output=text, keep=keep), tmp_path, "c")

    line = next(line for line in said.splitlines() if line.startswith("<"))
    assert line.endswith(">")
    assert "bytes left out" in line
    assert len(line) > MAX_BYTES // 2


def test_a_long_line_after_short_ones_is_cut_not_dropped(tmp_path: Path) -> None:
    said = shorten(ToolResult(output="short\n<" + "x" * 100_000 + ">\nend"), tmp_path, "c")

    assert said.startswith("short\n<xxx")
    assert "xxx>\n" in said


def test_an_output_that_its_tool_has_written_is_named_not_written_again(tmp_path: Path) -> None:
    whole = tmp_path / "elsewhere.txt"
    result = ToolResult(
        output="the end", keep="tail", whole=whole, metadata={"output_bytes": 123_456_789}
    )

    said = shorten(result, tmp_path, "c")

    assert said.endswith("\nthe end")
    assert str(whole) in said
    assert "123456789 bytes" in said
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_costs_the_file_only(tmp_path: Path) -> None:
    said = shorten(ToolResult(output="x\n" * 3000), tmp_path / "missing", "c")

    assert "could not be kept" in said


def test_text_that_utf8_cannot_hold_is_escaped(tmp_path: Path) -> None:
    assert shorten(ToolResult(output="a\udc80b"), tmp_path, "c") == "a\\udc80b"


@pytest.mark.parametrize("call_id", ["../../etc/passwd", "a/b", "", ".", "..", "x" * 300, "a\0b"])
def test_a_hostile_call_id_names_a_harmless_file(call_id: str) -> None:
    assert "/" not in safe_name(call_id)
    assert safe_name(call_id).startswith("call-")


lines = st.lists(
    st.builds(
        lambda letter, times: letter * times,
        st.sampled_from(["a", "\u00e9", "\u6f22", "\U0001f600", "\t", "\r", "\u2028"]),
        st.one_of(st.integers(0, 5), st.integers(0, 60_000)),
    ),
    max_size=6,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(lines=lines, blanks=st.integers(0, 4000), keep=st.sampled_from(["head", "tail"]))
def test_limits_hold_and_the_kept_end_is_there(
    tmp_path: Path, lines: list[str], blanks: int, keep: Keep
) -> None:
    text = "\n".join(["first", *lines, *[""] * blanks, *lines, "last"])

    said = shorten(ToolResult(output=text, keep=keep), tmp_path, "c")

    assert len(said.encode()) <= MAX_BYTES
    assert said.count("\n") + 1 <= MAX_LINES
    if keep == "head":
        assert said.startswith("first\n")
    else:
        assert said.endswith("\nlast")


@given(line=st.text("a\u00e9\U0001f600", max_size=400), most=st.integers(100, 300))
def test_a_cut_line_keeps_both_ends_and_its_limit(line: str, most: int) -> None:
    cut = cut_middle(line, most)

    assert len(cut.encode()) <= most
    assert cut[:5] == line[:5]
    assert cut[-5:] == line[-5:]
