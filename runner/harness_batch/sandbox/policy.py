"""What one session's commands may touch: files, network, how much. Records only; nothing is done.

Whoever starts a session's commands says what it wants here, and a mechanism (mechanisms.py) gives
as much of it as the host lets it.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from attrs import Factory, frozen

MIB, GIB = 1 << 20, 1 << 30


@frozen
class Closed:
    """No network but the sandbox's own loopback, where the mechanism can give one."""


@frozen
class Open:
    """The host's network."""


@frozen
class Through:
    """Nothing but a proxy that listens on a unix socket."""

    proxy: Path


Network = Closed | Open | Through

View = Literal["host", "narrow"]
"""All of the host read-only but for its secrets, or system folders and what is named."""

Treatment = Literal["hidden", "read", "write", "protected"]
"""Of a path and all below it: as if it were empty, readable, writable, read-only in a writable."""


@frozen(kw_only=True)
class Limits:
    """The most that each process may use, but for those that say otherwise. Bytes, numbers.

    Generous: against accidents and floods, never in the way of a build.
    """

    processes: int = Factory(lambda: max(512, 8 * (os.cpu_count() or 1)))
    """Of the session together, threads not counted; a command that makes more is ended."""
    tasks: int = 4096
    """Processes and threads of the session together; no more can be started."""
    open_files: int = 8192
    file: int = 16 * GIB
    data: int = Factory(
        # Not the address space: Java and Node reserve more of it than there is memory.
        lambda: max(8 * GIB, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    )
    scratch: int = 2 * GIB
    """A private /tmp in memory, where the mechanism can give one."""


@frozen(kw_only=True)
class Policy:
    """All that a session's launcher needs to know."""

    env: Mapping[str, str]
    """The whole environment of the commands."""
    cwd: Path
    """Where relative folders start."""
    network: Network = Factory(Open)
    view: View = "host"
    paths: Mapping[Path, Treatment] = Factory(dict)
    """Absolute, resolved. The longest path that is above a file or equal to it counts."""
    limits: Limits = Factory(Limits)
