"""Which of the containment properties hold on this host; proven by trying, never assumed."""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from attrs import frozen

from harness_batch.errors import SandboxError
from harness_batch.processes import Command
from harness_batch.sandbox.plain import open_launcher

PROPERTIES = (
    "write-confined",
    "net-none",
    "secrets-hidden",
    "no-survivors",
    "metadata-confined",
    "read-confined",
    "signal-confined",
    "unix-none",
    "loopback",
    "egress-allowlist",
    "git-file-protected",
)
NEEDS_SANDBOX = "needs the kernel sandbox, which this version does not have"

CANARY = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        os.execvp("sleep", ["sleep", "600"])
    os._exit(0)
os.wait()
"""
"""A daemon by the book: own session, double fork, holds on to the output."""


@frozen
class Property:
    """Whether commands are contained in this respect; `why` not, in words for the user."""

    holds: bool
    why: str = ""


async def host_properties() -> dict[str, Property]:
    """Every property of the contract's `sandbox.need`; costs two process starts."""
    found = {name: Property(holds=False, why=NEEDS_SANDBOX) for name in PROPERTIES}
    return {**found, "no-survivors": await _no_survivors()}


async def _no_survivors() -> Property:
    """Start a daemon through the real launcher and look for it when the call has returned."""
    output: list[bytes] = []
    with TemporaryDirectory(prefix="hb-probe-") as folder:
        env = {"PATH": os.environ.get("PATH", os.defpath)}
        command = Command(
            argv=(sys.executable, "-I", "-S", "-c", CANARY), cwd=Path(folder), timeout=10
        )
        try:
            async with open_launcher(env=env, cwd=Path(folder)) as launcher:
                await launcher.run(command, output.append)
        except SandboxError as error:
            return Property(holds=False, why=str(error))
    daemon = b"".join(output).strip()
    if not daemon.isdigit():
        return Property(holds=False, why="the canary process did not start")
    try:
        os.kill(int(daemon), 0)
    except ProcessLookupError:
        return Property(holds=True)
    return Property(holds=False, why="a daemon outlived its command")
