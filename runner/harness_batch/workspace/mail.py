"""Commit messages that survive `git am`.

Pure. Nothing in them can end the message or be taken for a patch. A message may
come from a template with a stranger's words in it.
"""

import re

DEFAULT_SUBJECT = "Changes by an agent session"

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u2028\u2029\ud800-\udfff]")
_TAKEN = re.compile(r"diff -|Index: |---|>*From |\w[\w-]*:|\s*-*\s*(?:>8|8<|>%|%<)")
"""What `git mailinfo` and `mailsplit` act on at the start of a line (mailinfo.c, mailsplit.c)."""
_TRAILER = re.compile(r"(?!From|Date|Subject|Index)\w[\w-]*: ", re.IGNORECASE)


def mail_safe(message: str) -> str:
    """The message with lines that git would act on moved one column in, control characters gone."""
    clean = _CONTROL.sub("\ufffd", message.replace("\r\n", "\n").replace("\r", "\n"))
    subject, _, body = clean.strip().partition("\n")
    lines = [_guarded(line.rstrip()) for line in body.strip("\n").split("\n")]
    text = "\n".join(lines).strip("\n")
    subject = " ".join(subject.split()) or DEFAULT_SUBJECT
    return f"{subject}\n\n{text}\n" if text else f"{subject}\n"


def _guarded(line: str) -> str:
    return f" {line}" if _TAKEN.match(line) and not _TRAILER.match(line) else line
