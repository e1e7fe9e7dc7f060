"""What this host gives for containing commands, and how to get more of it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from attrs import evolve, frozen

from harness_batch.sandbox import bubblewrap
from harness_batch.sandbox.mechanisms import MECHANISMS, Mechanism, lacking
from harness_batch.sandbox.policy import Closed, Through
from harness_batch.sandbox.probe import PROPERTIES, REQUIRED, Property, prove

ON_DEMAND = ("read-confined", "egress-allowlist")
"""What takes a sandbox of its own to try: done when a recipe needs it, and by `doctor`."""
_RESTRICTED = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
_PROFILE = "/etc/apparmor.d/bwrap"


@frozen(kw_only=True)
class Host:
    """The mechanism to use here, and what it holds."""

    mechanism: Mechanism
    properties: Mapping[str, Property]
    """Those that were tried."""
    passed_over: Mapping[Mechanism, str]
    """Stronger mechanisms, and why they are not it."""

    def holds(self, name: str) -> bool:
        """Proven, that is."""
        return name in self.properties and self.properties[name].holds

    def why_not(self, name: str) -> str:
        """In words; the stronger mechanism that would hold it is named with its own trouble."""
        told = self.properties[name].why if name in self.properties else "it was not tried"
        beside = (f"{mechanism}: {why}" for mechanism, why in self.passed_over.items())
        return "; ".join((f"{told} ({self.mechanism})", *beside))


async def probe_host(environ: Mapping[str, str], folder: Path) -> Host:
    """The strongest mechanism that works here, proven by attacks from inside.

    `folder` exists, belongs to the runner, and is where sessions work.
    """
    passed_over: dict[Mechanism, str] = {}
    hosts: list[Host] = []
    for mechanism in MECHANISMS:
        if (why := lacking(mechanism)) is not None:
            passed_over[mechanism] = why
            continue
        found = await prove(mechanism, environ, folder)
        known = {name: found[name] for name in PROPERTIES if name not in ON_DEMAND}
        host = Host(mechanism=mechanism, properties=known, passed_over=dict(passed_over))
        lost = _lost(host)
        if not lost:
            return host
        hosts.append(host)
        passed_over[mechanism] = known[lost[0]].why
    return min(hosts, key=lambda host: len(_lost(host)))


async def probe_more(host: Host, environ: Mapping[str, str], folder: Path) -> Host:
    """The same with what is tried on demand."""
    from harness_batch.sandbox.egress import open_egress  # noqa: PLC0415 - few runs need it

    with TemporaryDirectory(prefix="hb-probe-") as place:  # short: a socket's path goes there
        async with open_egress(("allowed.invalid",), Path(place)) as proxy:
            network = Through(proxy) if host.mechanism == "bubblewrap" else Closed()
            found = await prove(host.mechanism, environ, folder, network=network, view="narrow")
    more = {name: found[name] for name in ON_DEMAND}
    return evolve(host, properties={**host.properties, **more})


def mends(host: Host) -> Iterator[str]:
    """What people can do to get more, one step a line."""
    why = host.passed_over.get("bubblewrap")
    if why is None:
        return
    if bubblewrap.program() is None:
        yield "install bubblewrap: `sudo apt-get install bubblewrap` (or dnf, apk, pacman)"
    if _switched_on(_RESTRICTED):
        yield (
            "this system lets only programs with an AppArmor profile make namespaces. Once, as an "
            f"administrator: write `{_profile()}` to {_PROFILE}, then `sudo apparmor_parser -r "
            f"{_PROFILE}`"
        )
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        yield (
            "in a container: start it with `--security-opt seccomp=unconfined --security-opt "
            "apparmor=unconfined --security-opt systempaths=unconfined`, or declare that it is the "
            "sandbox with `sandbox: {external: true}`"
        )
    if _switched_on(Path("/proc/sys/kernel/unprivileged_userns_clone"), "0"):
        yield "allow namespaces: `sudo sysctl kernel.unprivileged_userns_clone=1`"
    if "landlock" in host.passed_over:
        yield "a kernel with Landlock (Linux 5.13 or newer, `landlock` in /sys/kernel/security/lsm)"


def _lost(host: Host) -> list[str]:
    return [name for name in REQUIRED if not host.holds(name)]


def _switched_on(setting: Path, value: str = "1") -> bool:
    try:
        return setting.read_text().strip() == value
    except OSError:
        return False


def _profile() -> str:
    program = bubblewrap.program() or "/usr/bin/bwrap"
    return (
        f"abi <abi/4.0>, include <tunables/global> profile bwrap {program} "
        "flags=(unconfined) { userns, }"
    )
