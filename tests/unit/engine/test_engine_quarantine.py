"""A patch is looked into, packed files included, before it leaves the session."""

import subprocess
from pathlib import Path

import pytest

from harness_batch.engine.quarantine import leaks, withheld
from harness_batch.store.masking import Mask

SECRET = "canary-9d41c7aa02-not-for-files"
MASK = Mask((SECRET,))
NOISE = bytes(range(256)) * 40


def patch(folder: Path, before: bytes, after: bytes) -> bytes:
    """What git makes of a changed file."""
    (folder / "old").write_bytes(before)
    (folder / "new").write_bytes(after)
    words = ["git", "diff", "--no-index", "--binary", "--full-index", "old", "new"]
    return subprocess.run(words, cwd=folder, capture_output=True, check=False).stdout


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (b"one\n", b"one\n" + SECRET.encode() + b"\n", b"@@"),
        (b"", NOISE + SECRET.encode(), b"literal"),
        (NOISE, NOISE[:3000] + SECRET.encode() + NOISE[3000:], b"delta"),
        (NOISE, NOISE[:3000] + SECRET[::-1].encode() + NOISE[3000:], b"delta"),
    ],
)
def test_a_secret_is_found_in_text_and_in_binary_files(
    tmp_path: Path, before: bytes, after: bytes, kind: bytes
) -> None:
    text = patch(tmp_path, before, after)

    assert b"\n" + kind in text
    assert leaks(text, MASK)
    assert not leaks(MASK.in_bytes(withheld(text)), MASK)


@pytest.mark.parametrize("after", [NOISE, NOISE[:99] + b"x" + NOISE[99:], b"literal 5\nAbc\n\n"])
def test_a_patch_without_a_secret_is_free(tmp_path: Path, after: bytes) -> None:
    assert not leaks(patch(tmp_path, NOISE, after), MASK)
    assert not leaks(b"literal 5\n!!!\nliteral 9\nzzzz\ndelta 1\nA~~~~~\n", MASK)
