"""Looking at real processes from outside."""

import os
from pathlib import Path

import trio


def is_alive(pid: int) -> bool:
    """Whether there is such a process, a zombie included."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def is_running(pid: int) -> bool:
    """As `is_alive`, zombies left out: outside of a launcher the system reaps them, or nobody."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def gone(pid: int, seconds: float = 5) -> None:
    """Wait until the process has ended; fails when it does not."""
    for _ in range(int(seconds * 100)):  # a stranger's process: there is no event to wait for
        if not is_running(pid):
            return
        await trio.sleep(0.01)
    raise AssertionError(f"process {pid} is still there")


def started_by(pid: int) -> dict[int, str]:
    """Descendants of a process with their names: `hb-supervisor`, `hb-keeper`, and commands."""
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                head, _, tail = (entry / "stat").read_text().rpartition(")")
            except OSError:
                continue
            parents[int(entry.name)] = int(tail.split()[1])
            names[int(entry.name)] = head.partition("(")[2]
    level, found = {pid}, {}
    while level:
        level = {child for child, parent in parents.items() if parent in level}
        found.update({child: names[child] for child in level})
    return found


def commands_of(pid: int) -> set[str]:
    """Names of all its descendants that are no part of a launcher."""
    return set(started_by(pid).values()) - {"hb-supervisor", "hb-keeper", "bwrap"}


def seen_from_here(inside: int, pid: int) -> int | None:
    """A descendant of `pid` by its number in its own pid namespace; None when it is gone."""
    for descendant in started_by(pid):
        try:
            status = Path(f"/proc/{descendant}/status").read_text()
        except OSError:
            continue
        numbers = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()
        if int(numbers[-1]) == inside:
            return descendant
    return None
