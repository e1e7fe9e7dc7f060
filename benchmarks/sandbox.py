"""What the sandbox costs: `python benchmarks/sandbox.py [COMMANDS]`.

For each mechanism that this host has: opening a session's sandbox until its first command (`true`)
is over, and each further command; milliseconds, best and median. Then the probe, which a run pays
once.
"""

import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median

import trio

from harness_batch.processes import Command
from harness_batch.sandbox.host import probe_host
from harness_batch.sandbox.launcher import open_launcher
from harness_batch.sandbox.mechanisms import MECHANISMS, Mechanism, lacking
from harness_batch.sandbox.policy import Closed, Policy
from harness_batch.sandbox.view import extended, host_view

SESSIONS = 10
COMMAND = Command(argv=("true",), cwd=Path())


async def measured(mechanism: Mechanism, commands: int) -> tuple[list[float], list[float]]:
    """(first commands, further ones), in milliseconds."""
    first: list[float] = []
    further: list[float] = []
    env = {"PATH": os.environ["PATH"]}
    base = host_view(os.environ)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for _ in range(SESSIONS):
            start = time.perf_counter()
            policy = Policy(
                env=env, cwd=folder, network=Closed(), paths=extended(base, write=[folder])
            )
            async with open_launcher(policy, mechanism) as launcher:
                for number in range(1 + commands // SESSIONS):
                    await launcher.run(COMMAND, lambda _: None)
                    now = time.perf_counter()
                    (further if number else first).append(1000 * (now - start))
                    start = now
    return first, further


async def main(commands: int) -> None:
    """Print the table of the documentation."""
    print("| mechanism | first command | each further command |\n|---|---|---|")
    for mechanism in MECHANISMS:
        if (why := lacking(mechanism)) is not None:
            print(f"| `{mechanism}` | {why} | |")
            continue
        first, further = await measured(mechanism, commands)
        print(f"| `{mechanism}` | {_told(first)} | {_told(further)} |")
    with tempfile.TemporaryDirectory() as name:
        start = time.perf_counter()
        host = await probe_host(os.environ, Path(name))
        print(f"\nprobe: {1000 * (time.perf_counter() - start):.0f} ms ({host.mechanism})")


def _told(milliseconds: list[float]) -> str:
    return f"{min(milliseconds):.1f} / {median(milliseconds):.1f} ms"


if __name__ == "__main__":
    trio.run(partial(main, int(sys.argv[1]) if len(sys.argv) > 1 else 200))
