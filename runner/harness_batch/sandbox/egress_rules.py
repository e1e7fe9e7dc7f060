"""Which hosts a sandbox with `network: [hosts]` may reach: by name and port, never by look. Pure.

`NAME` is that host alone, `*.NAME` any depth of subdomains and not the name itself, `*` every
public host. Ports are 80 and 443 unless one is named (`NAME:8443`). Names compare in their one
spelling.
"""

from collections.abc import Sequence

from attrs import frozen

from harness_batch.errors import SandboxError
from harness_batch.permissions.web_url import normal_host

PORTS = (80, 443)


@frozen
class HostRule:
    """One line of the list."""

    host: str
    """A normal name; with a leading `.` its subdomains; empty: every host."""
    ports: tuple[int, ...] = PORTS

    def covers(self, host: str, port: int) -> bool:
        """Whether the normal name `host` is meant at this port."""
        if port not in self.ports:
            return False
        if self.host.startswith("."):
            return host.endswith(self.host)
        return self.host in ("", host)


def host_rule(text: str) -> HostRule:
    """A line of `sandbox.network`. Raises: SandboxError when it is none."""
    name = text
    ports: tuple[int, ...] = PORTS
    bare, colon, port = text.rpartition(":")
    if colon and not text.endswith("]"):
        if not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536):
            raise SandboxError(f"sandbox.network: {text!r} has no valid port after the colon")
        name, ports = bare, (int(port),)
    if name == "*":
        return HostRule("", ports)
    dot = "." if name.startswith("*.") else ""
    host = normal_host(name[2:] if dot else name)
    if host is None:
        raise SandboxError(
            f"sandbox.network: {text!r} is no host; write a name such as example.org or "
            "*.example.org, with :PORT for others than 80 and 443"
        )
    return HostRule(dot + host, ports)


def covered(rules: Sequence[HostRule], host: str, port: int) -> bool:
    """Whether any rule lets `host` be reached at `port`."""
    return any(rule.covers(host, port) for rule in rules)
