"""Whether a session's commands have become too many processes, and whose fault that is.

The kernel counts no processes of root (RLIMIT_NPROC), and a control group (cgroups.py) is not to
be had everywhere, so each keeper looks a few times a second while its command runs. Keepers do not
talk: each sees the same numbers, and the one with the largest crowd ends its own command.
Standard library only, one thread; Linux, elsewhere nobody looks.
"""

import os
import sys
import time

from harness_batch.sandbox.reaping import children_of

SECONDS = 0.1
"""Between two looks."""
SHARE = 10
"""A look that took long is followed by a rest that many times as long."""


class Crowd:
    """One keeper's watch over all commands of its supervisor, which is its parent."""

    def __init__(self, most: int) -> None:
        """At most so many processes, threads not counted; 0 for any number."""
        self._most = most if sys.platform == "linux" else 0
        self._next = time.monotonic() + SECONDS

    def milliseconds(self) -> int | None:
        """Until it is time to look; None for never."""
        left = 1000 * (self._next - time.monotonic())
        return max(1, int(left)) if self._most else None

    def too_many(self) -> bool:
        """Whether this keeper's command has to end; looks only when it is time."""
        begun = time.monotonic()
        if not self._most or begun < self._next:
            return False
        guilty = _at_most() > self._most and _is_guilty(self._most)
        ended = time.monotonic()
        self._next = ended + max(SECONDS, SHARE * (ended - begun))
        return guilty


def _at_most() -> int:
    """A number that the session's processes do not exceed, for the price of one or two calls."""
    if os.getppid() == 1:  # the supervisor is process 1 of a namespace: all of /proc is ours
        return sum(name.isdigit() for name in os.listdir("/proc"))
    try:
        with open("/proc/loadavg", "rb") as load:  # the machine's threads: "… 2/345 …"
            return int(load.read().split()[3].partition(b"/")[2]) or sys.maxsize
    except (OSError, IndexError, ValueError):
        return sys.maxsize


def _is_guilty(most: int) -> bool:
    keepers = children_of(os.getppid())
    crowds = {keeper: len(family_of(keeper)) - 1 for keeper in keepers}
    own = crowds.get(os.getpid(), 0)
    return sum(crowds.values()) > most and (own, os.getpid()) == max(
        (size, keeper) for keeper, size in crowds.items()
    )


def family_of(pid: int) -> set[int]:
    """A process and all its descendants, whichever of its threads they are children of."""
    found, queue = {pid}, [pid]
    while queue:
        young = _young(queue.pop()) - found
        found |= young
        queue.extend(young)
    return found


def _young(pid: int) -> set[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return set()
    found = set[int]()
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as listing:
                found.update(map(int, listing.read().split()))
        except FileNotFoundError:
            if os.path.exists(f"/proc/{pid}"):  # a kernel without such lists
                return children_of(pid)
        except OSError:
            continue
    return found
