"""What of a fetched body the model reads: Markdown, plain text or the source; never binary data."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Literal

import trio

Format = Literal["markdown", "text", "html"]

ACCEPT = "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9,*/*;q=0.1"
CONVERT_SECONDS = 15.0
CONVERTER = Path(__file__).with_name("page_converter.py")
"""Run, never imported: it loads a library that the runner does not need."""

_HTML = {"text/html", "application/xhtml+xml"}
_TEXTS = {
    "application/javascript",
    "application/json",
    "application/toml",
    "application/x-ndjson",
    "application/x-sh",
    "application/x-yaml",
    "application/xml",
    "application/yaml",
    "",
}
"""Types beside `text/*`, `+json`, `+xml` and `+yaml` whose body is text."""
_CHARSETS = re.compile(
    r"utf-?8|utf-?16(le|be)?|us-ascii|ascii|latin-?1|iso-?8859-?\d{1,2}|windows-125\d|cp125\d"
    r"|koi8-[ru]|shift[_-]jis|euc-(jp|kr)|iso-2022-jp|gbk|gb2312|gb18030|big5|macintosh"
)
"""Character sets that are believed; Python knows codecs that a server should not choose."""
_META = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([A-Za-z0-9_-]{1,40})", re.IGNORECASE)
_LOOKED_AT = 2048
"""Bytes of a page in which its character set must be said."""


def is_text(content_type: str) -> bool:
    """Whether a body of this type can be read by a model."""
    kind = _kind(content_type)
    return kind.startswith("text/") or kind in _TEXTS or kind.endswith(("+json", "+xml", "+yaml"))


def decoded(body: bytes, content_type: str) -> str | None:
    """The body as text; None when it is binary whatever its type says."""
    text = _decoded(body, content_type)
    return None if "\0" in text[:_LOOKED_AT] else text


def is_html(text: str, content_type: str) -> bool:
    """Whether the text is a page rather than data."""
    kind = _kind(content_type)
    begins = text[:200].lstrip().lower()
    return kind in _HTML or (not kind and begins.startswith(("<!doctype html", "<html")))


async def converted(html: str, form: Literal["markdown", "text"]) -> str:
    """The page as Markdown or plain text, by a process of its own; in words when that fails."""
    argv = (sys.executable, "-I", str(CONVERTER), "plain" if form == "text" else form)
    with trio.move_on_after(CONVERT_SECONDS):
        done = await trio.run_process(
            argv,
            stdin=html.encode("utf-8", "replace"),
            capture_stdout=True,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            check=False,
        )
        if done.returncode == 0:
            return done.stdout.decode("utf-8", "replace")
    return "(the page is too large or too tangled to convert; format html shows its source)"


def _kind(content_type: str) -> str:
    return content_type.partition(";")[0].strip()


def _decoded(body: bytes, content_type: str) -> str:
    for mark, charset in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"),
                          (b"\xfe\xff", "utf-16")):  # fmt: skip
        if body.startswith(mark):
            return body.decode(charset, "replace")
    said = re.search(r"charset\s*=\s*[\"']?\s*([\w-]+)", content_type)
    meta = _META.search(body[:_LOOKED_AT])
    charset = (said[1] if said else meta[1].decode() if meta else "utf-8").lower()
    if not _CHARSETS.fullmatch(charset):
        charset = "utf-8"
    try:
        return body.decode(charset, "replace")
    except LookupError:
        return body.decode("utf-8", "replace")
