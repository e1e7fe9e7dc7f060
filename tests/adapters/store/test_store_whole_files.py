"""Files that a writer makes by name: what is no regular file stays what it is."""

import os
from pathlib import Path

import pytest

from harness_batch.errors import StorageError
from harness_batch.store.disk import whole_file


def write(path: Path) -> None:
    with whole_file(path) as new:
        new.write_text("new")


def test_a_pipe_or_a_folder_is_never_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path, Path("/dev/null")):
        with pytest.raises(StorageError, match="no regular file"):
            write(place)
    assert (tmp_path / "pipe").is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"


def test_a_place_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    for name in ("one", "x" * 300, "y" * 250):
        with pytest.raises(StorageError, match="cannot write"):
            write(tmp_path / name)
