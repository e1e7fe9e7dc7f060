"""Messages that a mail can carry."""

import pytest

from harness_batch.workspace.mail import DEFAULT_SUBJECT, mail_safe


@pytest.mark.parametrize(
    ("message", "safe"),
    [
        ("", f"{DEFAULT_SUBJECT}\n"),
        ("  one  \r\n\r\n two\r\n", "one\n\n two\n"),
        ("s\n\ndiff --git a/x b/x", "s\n\n diff --git a/x b/x\n"),
        ("s\n\n---\nFrom x\n>From y\nIndex: z", "s\n\n ---\n From x\n >From y\n Index: z\n"),
        ("s\n\nFrom: e\nDate: d\nSubject: t", "s\n\n From: e\n Date: d\n Subject: t\n"),
        ("s\n\nfrom: e", "s\n\n from: e\n"),
        ("s\n\nSigned-off-by: A <a@b>", "s\n\nSigned-off-by: A <a@b>\n"),
        ("a\x1b[0m\0b", "a\ufffd[0m\ufffdb\n"),
    ],
)
def test_lines_that_git_acts_on_move_one_column_in(message: str, safe: str) -> None:
    assert mail_safe(message) == safe
