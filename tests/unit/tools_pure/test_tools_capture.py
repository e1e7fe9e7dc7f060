"""A command's output: readable for the model, bounded in memory, whole in a file."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_batch.tools.capture import MAX_FILE, MAX_MEMORY, Capture, readable

READABLE = [
    (b"plain\n", "plain\n"),
    (b"\x1b[31mred\x1b[0m\n", "red\n"),
    (b"\x1b[2K\x1b[1Gx", "x"),
    (b"\x1b]0;title\x07x", "x"),
    (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
    (b"\x1b(Bx", "x"),
    (b"\x1b", ""),
    (b" 10%\r 50%\r100%\ndone\n", "100%\ndone\n"),
    (b" 10%\r100%\r\n", "100%\n"),
    (b"a\r\nb\r\n", "a\nb\n"),
    (b"\xff\xfe\n", "\\xff\\xfe\n"),
    ("gr\u00fc\u00df\n".encode(), "gr\u00fc\u00df\n"),
    (b"a\x00b\x07", "a\\x00b\\x07"),
    (b"a\tb", "a\tb"),
]


@pytest.mark.parametrize(("raw", "text"), READABLE)
def test_output_becomes_readable(raw: bytes, text: str) -> None:
    assert readable(raw) == text


@given(raw=st.binary(max_size=200))
def test_any_bytes_become_text_without_control_characters(raw: bytes) -> None:
    text = readable(raw)

    assert not any(ord(letter) < 32 and letter not in "\n\t" for letter in text)
    text.encode()


def test_a_hostile_stream_of_escapes_is_read_at_once() -> None:
    assert readable(b"\x1b[" * 100_000 + b"\x1b]" * 100_000 + b"\x1b[" + b"1" * 200_000)


def test_short_output_needs_no_file(tmp_path: Path) -> None:
    capture = Capture(tmp_path / "out.txt")
    capture.add(b"a")
    capture.add(b"b\n")
    capture.close()

    assert (capture.text(), capture.total, capture.whole) == ("ab\n", 3, None)
    assert list(tmp_path.iterdir()) == []


def test_long_output_is_whole_in_the_file_and_its_end_in_memory(tmp_path: Path) -> None:
    chunks = [b"%07d\n" % n * 1000 for n in range(200)]
    capture = Capture(tmp_path / "out.txt")
    for chunk in chunks:
        capture.add(chunk)
    capture.close()

    assert (tmp_path / "out.txt").read_bytes() == b"".join(chunks)
    assert capture.text().endswith("0000199\n")
    assert len(capture.text()) <= MAX_MEMORY
    assert capture.total == 200 * 8000


def test_the_file_stops_at_its_limit_and_says_so(tmp_path: Path) -> None:
    capture = Capture(tmp_path / "out.txt")
    for _ in range(70):
        capture.add(b"x" * (1 << 20))
    capture.close()

    assert (tmp_path / "out.txt").stat().st_size == MAX_FILE
    assert capture.trouble is not None
    assert str(MAX_FILE) in capture.trouble
    assert capture.total == 70 << 20


def test_a_file_that_cannot_be_made_costs_the_file_only(tmp_path: Path) -> None:
    capture = Capture(tmp_path / "missing" / "out.txt")
    capture.add(b"x" * (MAX_MEMORY + 1))
    capture.close()

    assert capture.trouble is not None
    assert capture.whole is None
    assert len(capture.text()) == MAX_MEMORY


def test_a_letter_that_the_cut_goes_through_is_left_out(tmp_path: Path) -> None:
    capture = Capture(tmp_path / "out.txt")
    capture.add(b"x" + "\u6f22".encode() * MAX_MEMORY)
    capture.close()

    assert set(capture.text()) == {"\u6f22"}
