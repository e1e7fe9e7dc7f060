"""The read tool on real files."""

import os
from base64 import b64decode
from pathlib import Path

import pytest
from attrs import evolve

from fakes_tools import Desk, desk
from harness_batch.tools.pictures import MAX_IMAGE
from harness_batch.tools.read import ReadTool
from harness_batch.tools.truncation import MAX_BYTES, shorten

READ = ReadTool()


@pytest.fixture
def at(tmp_path: Path) -> Desk:
    return desk(tmp_path)


async def text(at: Desk, data: bytes, **more: int) -> str:
    (at.context.root / "f.txt").write_bytes(data)
    result = await at.call(READ, file_path="f.txt", **more)
    assert result.status == "completed", result.output
    return result.output


async def test_lines_are_numbered(at: Desk) -> None:
    assert await text(at, b"one\n\nthree\n") == "     1\tone\n     2\t\n     3\tthree"


async def test_offset_and_limit_choose_lines_and_say_how_to_go_on(at: Desk) -> None:
    data = b"".join(b"line %d\n" % n for n in range(1, 101))

    said = await text(at, data, offset=10, limit=2)

    assert said == "    10\tline 10\n    11\tline 11\n[lines 10-11 of 100; for more: offset=12]"


async def test_offset_zero_is_the_first_line(at: Desk) -> None:
    assert (await text(at, b"one\n", offset=0)).startswith("     1\tone")


async def test_an_offset_past_the_end_is_an_error_that_tells_the_length(at: Desk) -> None:
    (at.context.root / "f.txt").write_text("one\ntwo")

    result = await at.call(READ, file_path="f.txt", offset=5)

    assert result.status == "error"
    assert "has 2 lines" in result.output


async def test_at_most_two_thousand_lines(at: Desk) -> None:
    said = await text(at, b"x\n" * 5000, limit=100_000)

    assert "  2000\tx" in said
    assert "  2001\tx" not in said
    assert "[lines 1-2000 of 5000; for more: offset=2001]" in said


async def test_what_is_shown_is_never_cut_again(at: Desk, tmp_path: Path) -> None:
    (at.context.root / "f.txt").write_text(("\u6f22" * 600 + "\n") * 500)

    result = await at.call(READ, file_path="f.txt")

    assert len(result.output.encode()) <= MAX_BYTES
    assert shorten(result, tmp_path, "c") == result.output
    assert "for more: offset=" in result.output


async def test_a_long_line_is_cut_in_its_middle(at: Desk) -> None:
    said = await text(at, b"<" + b"x" * 3000 + b">\nnext\n")

    first, second = said.split("\n")[:2]
    assert first.startswith("     1\t<xxx")
    assert first.endswith("xxx>")
    assert "left out" in first
    assert len(first) <= 2010
    assert second == "     2\tnext"


async def test_a_huge_line_is_cut_without_being_held(at: Desk) -> None:
    said = await text(at, b"<" + b"x" * 30_000_000 + b">\nnext\n")

    first, second = said.split("\n")[:2]
    assert first.startswith("     1\t<x")
    assert first.endswith("x>")
    assert second == "     2\tnext"


async def test_a_file_without_a_final_newline_says_so(at: Desk) -> None:
    assert "no newline at the end" in await text(at, b"one\ntwo")


async def test_crlf_and_a_byte_order_mark_are_not_shown_as_text(at: Desk) -> None:
    said = await text(at, b"\xef\xbb\xbfone\r\ntwo\r\n")

    assert said.startswith("     1\tone\n     2\ttwo\n")
    assert "CRLF" in said


async def test_bytes_that_are_not_utf8_are_shown_escaped(at: Desk) -> None:
    said = await text(at, b"\xe9t\xe9\n")

    assert "\\xe9t\\xe9" in said
    assert "not UTF-8" in said


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 50, "a PNG image of 58 bytes"),
        (b"abc\0def", "a binary file of 7 bytes"),
        (bytes(range(1, 9)) * 20, "a binary file of 160 bytes"),
        ("text".encode("utf-16"), "UTF-16 text"),
    ],
)
async def test_a_binary_file_is_named_not_dumped(at: Desk, data: bytes, kind: str) -> None:
    assert kind in await text(at, data)


PICTURES = {
    "image/png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "image/jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF",
    "image/gif": b"GIF89a\1\0\1\0",
    "image/webp": b"RIFF\x1a\0\0\0WEBPVP8L",
}


@pytest.mark.parametrize("kind", PICTURES)
async def test_a_model_that_takes_images_sees_a_picture_whatever_its_name(
    at: Desk, kind: str
) -> None:
    seeing = Desk(evolve(at.context, takes_images=True))
    (at.context.root / "notes.txt").write_bytes(PICTURES[kind])
    result = await seeing.call(READ, file_path="notes.txt")
    (image,) = result.images
    assert (image.media_type, b64decode(image.data)) == (kind, PICTURES[kind])
    assert (await at.call(READ, file_path="notes.txt")).images == ()


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PICTURES["image/png"] + b"\0" * MAX_IMAGE, "a PNG image of"),
        (b"RIFF\x1a\0\0\0WAVEfmt ", "RIFF"),
        (b"GIF8 is a name", "a GIF image of"),
        (b"plain text", "plain text"),
    ],
)
async def test_what_is_too_large_or_no_picture_is_not_sent_as_one(
    at: Desk, data: bytes, kind: str
) -> None:
    seeing = Desk(evolve(at.context, takes_images=True))
    (at.context.root / "f.png").write_bytes(data)
    result = await seeing.call(READ, file_path="f.png")
    assert result.images == ()
    assert kind in result.output


async def test_an_empty_file_is_said_to_be_empty(at: Desk) -> None:
    assert await text(at, b"") == "f.txt is empty (0 bytes)."


async def test_a_missing_file_offers_near_names(at: Desk) -> None:
    folder = at.context.root / "src"
    folder.mkdir()
    (folder / "settings.py").touch()

    for path in ("src/settingz.py", "src/Settings.PY", "srcs/settings.py"):
        result = await at.call(READ, file_path=path)
        assert result.status == "error"
        assert "no such file" in result.output
        assert "src" in result.output.split("mean")[1]


async def test_a_folder_is_listed(at: Desk) -> None:
    for name in ("b.py", "a.py"):
        (at.context.root / name).touch()
    (at.context.root / "sub").mkdir()
    (at.context.root / ".git").mkdir()

    result = await at.call(READ, file_path=".")

    assert result.output == ". is a folder with 3 entries:\na.py\nb.py\nsub/"


async def test_a_file_name_that_is_not_utf8_can_be_listed(at: Desk) -> None:
    (at.context.root / os.fsdecode(b"\xff.txt")).touch()

    result = await at.call(READ, file_path=".")

    assert "\\xff.txt" in result.output


async def test_a_sparse_terabyte_is_answered_at_once(at: Desk) -> None:
    with (at.context.root / "f.txt").open("wb") as file:
        file.write(b"text\n" * 2000)
        file.truncate(1 << 40)

    result = await at.call(READ, file_path="f.txt", limit=2)

    assert result.output.startswith("     1\ttext\n     2\ttext\n[lines 1-2 of a file of ")


async def test_a_hard_link_is_noted(at: Desk) -> None:
    (at.context.root / "other").write_text("x\n")
    (at.context.root / "f").hardlink_to(at.context.root / "other")

    result = await at.call(READ, file_path="f")

    assert "hard link" in result.output
