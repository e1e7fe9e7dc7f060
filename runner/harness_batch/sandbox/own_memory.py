"""What the runner was started with stays its own: nobody reads its environment or traces it.

`os.environ` is a copy: the block that the kernel handed over stays readable in /proc/PID/environ to
every process with the same rights, for as long as this one lives. So it is wiped, once the C
library has a copy of its own. A process that cannot be dumped cannot be traced either, nor can its
memory be read in /proc, but by root. Linux; elsewhere nothing is done.
"""

import ctypes
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

PR_SET_DUMPABLE = 4
WORTH_HIDING = 6
"""Characters; a shorter value would be found everywhere."""


def shield() -> None:
    """Do it for this process. Programs that it starts are dumpable again, as they should be."""
    if sys.platform != "linux":
        return
    for name, value in os.environ.items():
        os.putenv(name, value)  # the C library's copy, which it looks at from now on
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    block = _environment_block()
    if block is not None:
        start, end = block
        ctypes.memset(start, 0, end - start)


def without_secrets(environ: Mapping[str, str], secrets: Iterable[str]) -> dict[str, str]:
    """The variables that hold none of these values; what remains may be named by a recipe."""
    hidden = [secret for secret in secrets if len(secret) >= WORTH_HIDING]
    return {
        name: value
        for name, value in environ.items()
        if not any(secret in value for secret in hidden)
    }


def _environment_block() -> tuple[int, int] | None:
    """First address and the one behind the last; None when the kernel does not say."""
    try:
        stat = Path("/proc/self/stat").read_bytes()
    except OSError:
        return None
    fields = stat.rpartition(b")")[2].split()  # from the third on: the second may hold anything
    start, end = (int(fields[number - 3]) for number in (50, 51))
    return (start, end) if 0 < start < end else None
