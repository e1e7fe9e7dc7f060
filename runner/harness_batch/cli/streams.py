"""stdout and stderr that may go away: a reader that left, a full disk, never there at all.

What a run does must not depend on who reads it: a write that fails is remembered and forgotten, and
the entry point says at the end what it means for the exit code.
"""

import errno
import io
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

TROUBLE = 3
"""Exit code when the result could not be written down."""


class Outlet(io.FileIO):
    """A descriptor that takes everything; after the first failure into nothing."""

    trouble: OSError | None = None
    """The first failure."""
    mask: Callable[[bytes], bytes] | None = None
    """Takes secrets out of what is written."""

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write, or swallow. Returns how much was taken."""
        if self.trouble is None:
            try:
                if self.mask is None:
                    return super().write(data)
                left = memoryview(self.mask(bytes(data)))
                while left:
                    left = left[super().write(left) :]
            except OSError as error:
                self.trouble = error
        return memoryview(data).nbytes


def open_streams() -> Outlet:
    """Put outlets in place of `sys.stdout` and `sys.stderr`; returns that of stdout.

    Descriptors that are closed become /dev/null first, or the next file that is opened (the
    journal, the database) would get their number and with it what is printed.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
    outlets = (Outlet(1, "wb", closefd=False), Outlet(2, "wb", closefd=False))
    sys.stdout, sys.stderr = map(_text, outlets)
    return outlets[0]


def mask_streams(mask: Callable[[bytes], bytes]) -> None:
    """From now on nothing leaves through stdout or stderr unmasked."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
        outlet = getattr(stream.buffer, "raw", None)
        if isinstance(outlet, Outlet):
            outlet.mask = mask


def code_of(outlet: Outlet, code: int) -> int:
    """The exit code, when stdout has or has not taken everything; says what went wrong."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    trouble = outlet.trouble
    if trouble is None or trouble.errno == errno.EPIPE:
        return code  # who closes the pipe has seen enough
    sys.stderr.write(f"harness-batch: cannot write to stdout: {trouble.strerror}\n")
    sys.stderr.flush()
    return code or TROUBLE


def _text(outlet: Outlet) -> io.TextIOWrapper:
    """Text in UTF-8, whatever the locale; paths that are not UTF-8 stand escaped."""
    return io.TextIOWrapper(
        io.BufferedWriter(outlet),
        encoding="utf-8",
        errors="backslashreplace",
        line_buffering=outlet.fileno() == 2,
    )


def is_gone(stream: TextIO) -> bool:
    """Whether what is written to the stream goes nowhere any more."""
    raw = getattr(stream.buffer, "raw", None)
    return isinstance(raw, Outlet) and raw.trouble is not None


def tell(text: str) -> None:
    """Words for people, on stderr. Names of files in them may be a repository's: made inert."""
    import click

    from harness_batch_reports.hostile import inert

    click.echo(inert(text), err=True)
