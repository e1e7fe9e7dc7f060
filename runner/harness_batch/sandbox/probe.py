"""Which of the containment properties hold on this host; proven by attacks, never assumed.

A canary (canary.py) runs through the real launcher and tries to break out; what it attacks is set
up here, and what it says is held against what is seen from outside. Nothing waits: every attack
has succeeded or failed when its command is over.
"""

import fcntl
import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

from attrs import frozen

from harness_batch.errors import SandboxError
from harness_batch.processes import Command
from harness_batch.sandbox import canary
from harness_batch.sandbox.launcher import open_launcher
from harness_batch.sandbox.mechanisms import MECHANISMS, Mechanism, lacking
from harness_batch.sandbox.policy import Closed, Network, Policy, Through, View
from harness_batch.sandbox.relay import PORT
from harness_batch.sandbox.secrets_at import homes
from harness_batch.sandbox.view import treatments

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
REQUIRED = PROPERTIES[:4]
"""What `--sandbox required` asks for."""
SECONDS = 20.0
"""A canary that takes longer proves nothing."""


@frozen
class Property:
    """Whether commands are contained in this respect; `why` not, in words for the user."""

    holds: bool
    why: str = ""


@frozen(kw_only=True)
class Host:
    """What this host gives: the mechanism to use, and what it holds."""

    mechanism: Mechanism
    properties: Mapping[str, Property]
    """Every property of the contract's `sandbox.need`."""
    passed_over: Mapping[Mechanism, str]
    """Stronger mechanisms, and why they are not it."""


async def probe_host(environ: Mapping[str, str], folder: Path) -> Host:
    """The strongest mechanism that works here, proven. `folder` exists and is not temporary.

    `read-confined` and `egress-allowlist` are what the mechanism can give: `prove` tries them
    when somebody needs them.
    """
    passed_over: dict[Mechanism, str] = {}
    best: Host | None = None
    for mechanism in MECHANISMS:
        why = lacking(mechanism)
        if why is None:
            found = await prove(mechanism, environ, folder)
            lost = [name for name in REQUIRED if not found[name].holds]
            host = Host(mechanism=mechanism, properties=found, passed_over=passed_over)
            if not lost:
                return host
            better = best is None or len(lost) < sum(
                not best.properties[name].holds for name in REQUIRED
            )
            best = host if better or best is None else best
            why = found[lost[0]].why
        passed_over[mechanism] = why
    assert best is not None
    return best
