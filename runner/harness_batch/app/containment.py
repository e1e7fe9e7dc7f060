"""What contains the sessions of a run: the mechanism, the promises of it, and each one's policy."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from threading import Thread

import trio
from attrs import asdict, define, evolve, field, frozen

from harness_batch.app.ci import is_untrusted
from harness_batch.app.options import SandboxMode
from harness_batch.app.places import cache_folder
from harness_batch.errors import HarnessError, SandboxError, StorageError
from harness_batch.plan.item import Item
from harness_batch.recipe.record import SandboxWish
from harness_batch.sandbox.bounds import in_force
from harness_batch.sandbox.host import ON_DEMAND, Host, mends, probe_host, probe_more
from harness_batch.sandbox.mechanisms import Mechanism
from harness_batch.sandbox.policy import Closed, Limits, Network, Open, Policy, Through, Treatment
from harness_batch.sandbox.probe import REQUIRED
from harness_batch.sandbox.view import extended, host_view, runtime
from harness_batch.workspace.repository import configurations
from harness_batch.workspace.worktree import Workspace

UNPROBED = Host(mechanism="plain", properties={}, passed_over={})
"""What `--sandbox off` takes without looking."""


@frozen(kw_only=True)
class Containment:
    """Of one run."""

    mode: SandboxMode
    untrusted: bool
    """Strangers had a hand in what is worked on: see `is_untrusted`."""
    host: Host
    base: Mapping[Path, Treatment]
    """How the host's files are seen by all sessions."""

    def refusal(self, item: Item) -> str | None:
        """Why the item cannot be run here; None when it can. Pure."""
        wish = item.recipe.sandbox
        if wish.external:
            return None
        missing = sorted(name for name in self.needed(wish) if not self.host.holds(name))
        if missing and self.mode == "off":
            return f"--sandbox off gives nothing of what is needed: {', '.join(missing)}"
        if missing:
            why = "; ".join(f"{name}: {self.host.why_not(name)}" for name in missing)
            steps = "".join(f"; {step}" for step in mends(self.host))
            return f"the host does not give what is needed: {why}{steps}"
        if "secrets-hidden" in self.needed(wish) and self._cannot_hide_config(item):
            return (
                "secrets-hidden must hold, but with `workspace.mode: in-place` Landlock cannot "
                "hide .git/config, which may hold tokens; use `mode: worktree`, or bubblewrap"
            )
        if "net-none" in self.needed(wish) and wish.network == "all":
            return (
                f"net-none must hold ({self._whose(wish)}), but the recipe asks for `network: all`"
            )
        return None

    def needed(self, wish: SandboxWish) -> frozenset[str]:
        """The properties that must hold for such a recipe."""
        needed = set(wish.need)
        if self.mode == "required" or (self.untrusted and self.mode == "auto"):
            needed |= set(REQUIRED)
        if isinstance(wish.network, tuple):
            needed = {*needed, "egress-allowlist"} - ({"net-none"} - set(wish.need))
        return frozenset(needed)

    def _whose(self, wish: SandboxWish) -> str:
        if "net-none" in wish.need:
            return "`sandbox.need`"
        return "--sandbox required" if self.mode == "required" else "the event is not trusted"

    def mechanism(self, wish: SandboxWish) -> Mechanism:
        """What contains such a recipe's sessions."""
        return "plain" if wish.external or self.mode == "off" else self.host.mechanism

    def policy(
        self, item: Item, workspace: Workspace, env: Mapping[str, str], network: Network
    ) -> Policy:
        """For the commands of one session. Blocks. Raises: SandboxError."""
        wish, place = item.recipe.sandbox, workspace.private.parent
        ours = tuple(_our_own_in(workspace.root))
        if ours and self.mechanism(wish) == "landlock":
            raise SandboxError(
                f"the runner itself lies in the checkout ({ours[0]}), where Landlock cannot keep "
                "commands from changing it; install it elsewhere, or use `workspace.mode: worktree`"
            )
        write = [Path(path).expanduser() for path in wish.write]
        for path in write:
            with suppress(OSError):  # what cannot be made cannot be written to either
                path.mkdir(parents=True, exist_ok=True)
        own = (workspace.root, place / "git", place / "capture", workspace.home, workspace.tmp)
        repository = workspace.repository
        return Policy(
            env=env,
            cwd=workspace.root,
            network=network,
            view="narrow" if "read-confined" in wish.need else "host",
            paths=extended(
                self.base,
                write=(*own, *write),
                read=(place, repository.objects, item.recipe.file.parent),
                protected=(
                    *(workspace.root / name for name in (".git", ".harness")),
                    # What the runner itself is made of may lie in a checkout that is worked in.
                    *ours,
                ),
                hide=(
                    place.parent.parent,  # where all sessions work
                    *(() if self._cannot_hide_config(item) else configurations(repository)),
                ),
            ),
        )

    def _cannot_hide_config(self, item: Item) -> bool:
        """Landlock hides nothing in a folder that can be written to."""
        in_place = item.recipe.workspace.mode == "in-place"
        return in_place and self.mechanism(item.recipe.sandbox) == "landlock"

    def setup_network(self, item: Item) -> Network:
        """Which network the commands of `workspace.setup` have."""
        none = self.untrusted or item.recipe.workspace.setup_network == "none"
        return Closed() if none else Open()

    def record(self) -> dict[str, object]:
        """For the run's row."""
        return {
            "mode": self.mode,
            "mechanism": self.host.mechanism,
            "untrusted": self.untrusted,
            "properties": {name: prop.holds for name, prop in self.host.properties.items()},
            "passed_over": dict(self.host.passed_over),
            "bounds": {name: asdict(bound) for name, bound in in_force(Limits()).items()},
        }

    def told(self) -> tuple[str, ...]:
        """What people should know before the sessions start."""
        if self.mode != "auto" or self.host.mechanism == "bubblewrap":
            return ()
        if self.host.mechanism == "plain":
            return ("no kernel sandbox: run only what you trust; see `harness-batch doctor`",)
        lost = [name for name, prop in self.host.properties.items() if not prop.holds]
        return (
            f"sandbox: {self.host.mechanism}, without {', '.join(lost)}; see `harness-batch "
            "doctor`",
        )


def _our_own_in(root: Path) -> Iterator[Path]:
    """What the runner is made of, as far as it lies in a work tree; not the tree itself."""
    for path in runtime():
        if root in path.resolve().parents:
            yield path


@asynccontextmanager
async def open_network(
    wish: SandboxWish, tmp: Path, notice: Callable[[str], None]
) -> AsyncIterator[Network]:
    """What such a recipe's commands may reach, for as long as the block runs.

    `tmp` is the session's own folder for a proxy's socket: its path must be short.
    Raises: SandboxError.
    """
    match wish.network:
        case "none":
            yield Closed()
        case "all":
            yield Open()
        case hosts:
            from harness_batch.sandbox.egress import open_egress

            place = tmp / ".egress"
            place.mkdir(mode=0o700)
            async with open_egress(hosts, place, told=notice) as proxy:
                yield Through(proxy)


@define
class Look:
    """The look at the host, in a thread of its own from the moment it is made.

    It mostly waits for processes, while the run reads recipes and makes its plan.
    """

    environ: Mapping[str, str]
    mode: SandboxMode
    _found: list[Host | HarnessError] = field(factory=list, init=False)
    _thread: Thread = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._thread = Thread(target=self._look, name="look at the host")
        self._thread.start()

    async def containment(self, items: Iterable[Item], hide: Iterable[Path] = ()) -> Containment:
        """What came of it, with what these items need and takes an attack of its own to prove.

        Raises: StorageError where there is no folder to work in.
        """
        base = host_view(self.environ, hide)
        await trio.to_thread.run_sync(self._thread.join)
        match self._found:
            case [Host() as host]:
                pass
            case [HarnessError() as error]:
                raise error
            case _:  # a bug of ours; its thread has told it
                raise SandboxError("looking at what this host can contain failed")
        containment = Containment(
            mode=self.mode, untrusted=is_untrusted(self.environ), host=host, base=base
        )
        needed = {name for item in items for name in containment.needed(item.recipe.sandbox)}
        if self.mode == "off" or not needed & set(ON_DEMAND):
            return containment
        folder = cache_folder(self.environ) / "harness-batch"
        return evolve(containment, host=await probe_more(host, self.environ, folder))

    def _look(self) -> None:
        try:
            host = UNPROBED
            if self.mode != "off":
                folder = cache_folder(self.environ) / "harness-batch"
                host = trio.run(probe_host, self.environ, folder)
            self._found.append(host)
        except HarnessError as error:
            self._found.append(error)
        except OSError as error:
            self._found.append(StorageError(f"cannot look at what this host contains: {error}"))


async def examined(environ: Mapping[str, str]) -> Host:
    """All that this host gives, everything tried."""
    folder = cache_folder(environ) / "harness-batch"
    return await probe_more(await probe_host(environ, folder), environ, folder)
