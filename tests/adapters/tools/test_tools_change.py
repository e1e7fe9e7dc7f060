"""write, edit and multiedit on real files: what is kept, and what must be read first."""

import stat
from pathlib import Path

import pytest

from fakes_tools import Desk, desk
from harness_batch.tools.edit import EditTool
from harness_batch.tools.multiedit import MultieditTool
from harness_batch.tools.read import ReadTool
from harness_batch.tools.write import WriteTool

READ, WRITE, EDIT, MULTIEDIT = ReadTool(), WriteTool(), EditTool(), MultieditTool()


@pytest.fixture
def at(tmp_path: Path) -> Desk:
    return desk(tmp_path)


async def known(at: Desk, data: bytes, mode: int = 0o644) -> Path:
    """A file that the session has read."""
    file = at.context.root / "f.txt"
    file.write_bytes(data)
    file.chmod(mode)
    await at.call(READ, file_path="f.txt")
    return file


async def test_a_new_file_is_written_with_its_folders(at: Desk) -> None:
    result = await at.call(WRITE, file_path="a/b/c.txt", content="one\ntwo")

    assert result.status == "completed"
    assert "7 bytes, 2 lines" in result.output
    assert (at.context.root / "a/b/c.txt").read_bytes() == b"one\ntwo"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (WRITE, {"content": "new\n"}),
        (EDIT, {"old_string": "old", "new_string": "new"}),
        (MULTIEDIT, {"edits": [{"old_string": "old", "new_string": "new"}]}),
    ],
)
async def test_an_existing_file_must_have_been_read_and_be_unchanged(
    at: Desk, tool: WriteTool, arguments: dict[str, object]
) -> None:
    file = at.context.root / "f.txt"
    file.write_text("old\n")

    unread = await at.call(tool, file_path="f.txt", **arguments)
    await at.call(READ, file_path="f.txt")
    file.write_text("old \n")
    changed = await at.call(tool, file_path="f.txt", **arguments)
    untouched = file.read_text()
    await at.call(READ, file_path="f.txt")
    fine = await at.call(tool, file_path="f.txt", **arguments)

    assert (unread.status, changed.status, fine.status) == ("error", "error", "completed")
    assert "was not read" in unread.output
    assert "has changed" in changed.output
    assert untouched == "old \n"
    assert file.read_text().strip() == "new"


async def test_what_the_session_wrote_itself_it_knows(at: Desk) -> None:
    await at.call(WRITE, file_path="f.txt", content="one\n")

    first = await at.call(EDIT, file_path="f.txt", old_string="one", new_string="two")
    second = await at.call(EDIT, file_path="f.txt", old_string="two", new_string="three")

    assert (first.status, second.status) == ("completed", "completed")
    assert (at.context.root / "f.txt").read_text() == "three\n"


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o444])
async def test_mode_bits_are_kept(at: Desk, mode: int) -> None:
    file = await known(at, b"old\n", mode)

    await at.call(EDIT, file_path="f.txt", old_string="old", new_string="new")
    await at.call(WRITE, file_path="f.txt", content="newer\n")

    assert file.read_text() == "newer\n"
    assert stat.S_IMODE(file.stat().st_mode) == mode


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\r\nb\r\n", "a\nc\n", b"a\r\nc\r\n"),
        (b"a\r\nb\r\n", "a\r\nc\r\n", b"a\r\nc\r\n"),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
        (b"\xef\xbb\xbfa\n", "\ufeffb\n", b"\xef\xbb\xbfb\n"),
        (b"a\nb", "a\nc", b"a\nc"),
        (b"a\r\nb\n", "a\nc\n", b"a\nc\n"),
        (b"", "x\n", b"x\n"),
    ],
)
async def test_write_keeps_the_manner_of_the_old_file(
    at: Desk, before: bytes, content: str, after: bytes
) -> None:
    file = await known(at, before)

    await at.call(WRITE, file_path="f.txt", content=content)

    assert file.read_bytes() == after


async def test_an_edit_through_a_link_leaves_the_link(at: Desk) -> None:
    file = await known(at, b"old\n")
    (at.context.root / "link").symlink_to("f.txt")

    await at.call(EDIT, file_path="link", old_string="old", new_string="new")

    assert (at.context.root / "link").is_symlink()
    assert file.read_text() == "new\n"


async def test_the_other_name_of_a_hard_link_keeps_its_content(at: Desk, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("old\n")
    (at.context.root / "f.txt").hardlink_to(tmp_path / "other")
    await at.call(READ, file_path="f.txt")

    result = await at.call(EDIT, file_path="f.txt", old_string="old", new_string="new")

    assert "hard link" in result.output
    assert (tmp_path / "other").read_text() == "old\n"
    assert (at.context.root / "f.txt").read_text() == "new\n"


async def test_the_answer_carries_a_diff_and_the_way(at: Desk) -> None:
    await known(at, b"a\n  b\nc\n")

    result = await at.call(EDIT, file_path="f.txt", old_string="\tb\n", new_string="\td\n")

    assert result.output == (
        "Edited f.txt: 1 place replaced (found by: trimmed lines), now 8 bytes.\n"
        "--- a/f.txt\n+++ b/f.txt\n@@ -1,3 +1,3 @@\n a\n-  b\n+  d\n c"
    )


async def test_the_diff_numbers_lines_from_the_start_of_the_file(at: Desk) -> None:
    await known(at, b"".join(b"line %d\n" % n for n in range(1, 1001)))

    result = await at.call(EDIT, file_path="f.txt", old_string="line 500\n", new_string="x\ny\n")

    assert "@@ -497,7 +497,8 @@" in result.output


async def test_a_diff_of_everything_is_bounded(at: Desk) -> None:
    file = await known(at, b"a\n" * 50_000)

    result = await at.call(WRITE, file_path="f.txt", content="b\n" * 60_000)

    assert file.stat().st_size == 120_000
    assert len(result.output) < 1000
    assert "too many to show" in result.output


async def test_multiedit_is_all_or_none(at: Desk) -> None:
    file = await known(at, b"one\ntwo\n")

    failed = await at.call(
        MULTIEDIT,
        file_path="f.txt",
        edits=[
            {"old_string": "one", "new_string": "1"},
            {"old_string": "three", "new_string": "3"},
        ],
    )
    untouched = file.read_text()
    done = await at.call(
        MULTIEDIT,
        file_path="f.txt",
        edits=[
            {"old_string": "one", "new_string": "1"},
            {"old_string": "two", "new_string": "2"},
        ],
    )

    assert failed.status == "error"
    assert "Edit 2 of 2" in failed.output
    assert untouched == "one\ntwo\n"
    assert done.status == "completed"
    assert file.read_text() == "1\n2\n"


async def test_an_empty_old_text_makes_a_new_file_and_never_replaces_one(at: Desk) -> None:
    made = await at.call(EDIT, file_path="new.txt", old_string="", new_string="x\n")
    again = await at.call(EDIT, file_path="new.txt", old_string="", new_string="y\n")

    assert (made.status, again.status) == ("completed", "error")
    assert (at.context.root / "new.txt").read_text() == "x\n"


async def test_an_edit_of_a_missing_file_is_an_error(at: Desk) -> None:
    result = await at.call(EDIT, file_path="new.txt", old_string="a", new_string="b")

    assert result.status == "error"
    assert "no such file" in result.output
    assert not (at.context.root / "new.txt").exists()


@pytest.mark.parametrize("path", ["sub", "."])
async def test_a_folder_is_not_written(at: Desk, path: str) -> None:
    (at.context.root / "sub").mkdir()

    result = await at.call(WRITE, file_path=path, content="x")

    assert result.status == "error"
    assert "folder" in result.output


async def test_a_file_in_the_way_of_a_folder_is_an_error(at: Desk) -> None:
    (at.context.root / "f").touch()

    result = await at.call(WRITE, file_path="f/x.txt", content="x")

    assert result.status == "error"
    assert [path.name for path in at.context.root.iterdir()] == ["f"]


async def test_a_file_too_big_to_edit_says_what_to_do(at: Desk) -> None:
    with (at.context.root / "f.txt").open("wb") as file:
        file.write(b"text\n")
        file.truncate(1 << 40)
    await at.call(READ, file_path="f.txt")

    result = await at.call(EDIT, file_path="f.txt", old_string="text", new_string="x")

    assert result.status == "error"
    assert "bash" in result.output


async def test_no_temporary_file_is_left(at: Desk) -> None:
    await known(at, b"old\n")
    await at.call(EDIT, file_path="f.txt", old_string="old", new_string="new")

    assert [path.name for path in at.context.root.iterdir()] == ["f.txt"]


async def test_writing_what_is_there_already_changes_nothing(at: Desk) -> None:
    file = await known(at, b"same\n")
    before = file.stat().st_mtime_ns

    result = await at.call(WRITE, file_path="f.txt", content="same\n")

    assert "nothing was written" in result.output
    assert file.stat().st_mtime_ns == before
