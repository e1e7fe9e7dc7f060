"""Opens the place of one attempt: a work tree at the pinned base and a launcher inside it."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from attrs import field, frozen

from harness_batch.app.containment import Containment, open_network
from harness_batch.app.options import Inputs
from harness_batch.app.places import cache_folder
from harness_batch.engine.log import timestamp
from harness_batch.engine.site import Change, Site
from harness_batch.plan.item import Item
from harness_batch.processes import Launcher
from harness_batch.recipe.record import PatchRules
from harness_batch.records import Session
from harness_batch.sandbox.environment import tool_environment
from harness_batch.sandbox.launcher import ForEach, open_launcher
from harness_batch.workspace.owner import sweep_stale, worktrees_folder
from harness_batch.workspace.patch import Commit
from harness_batch.workspace.patch_rules import judge_patch
from harness_batch.workspace.repository import Repository
from harness_batch.workspace.reset import reset
from harness_batch.workspace.worktree import Workspace, open_workspace


@frozen
class JudgedWorkspace:
    """A workspace whose change is held against the recipe's patch rules."""

    workspace: Workspace
    rules: PatchRules
    launcher: Launcher
    notice: Callable[[str], None]

    @property
    def root(self) -> Path:
        """Top of the work tree."""
        return self.workspace.root

    @property
    def cwd(self) -> Path:
        """Where the agent starts."""
        return self.workspace.cwd

    async def change(self, message: str) -> Change:
        """The patch and what the rules say to it. Raises: GitError."""
        commit = Commit(message=message, date=timestamp())
        captured = await self.workspace.capture(commit, self.launcher)
        if captured is None:
            return Change(patch=None)
        for text in captured.notices:
            self.notice(text)
        return Change(
            patch=captured.patch or None,
            paths=captured.paths,
            added=captured.added,
            removed=captured.removed,
            patch_id=captured.patch_id,
            applies=captured.applies,
            refused=judge_patch(captured.entries, self.rules, len(captured.patch)),
        )

    async def reset(self) -> None:
        """Back to the base. Raises: GitError."""
        for text in await reset(self.workspace, self.launcher):
            self.notice(text)


@frozen(kw_only=True)
class Sites:
    """Opens sites for the items of one run."""

    repositories: Mapping[str, Repository]
    inputs: Inputs
    containment: Containment
    folder: Path
    """`<cache>/harness-batch/worktrees/<run>`."""
    keep: bool
    notice: Callable[[str, str], None]
    """Tells people something about a session: session id, text."""
    notices: tuple[str, ...] = field(default=())
    """What sweeping up after dead runs had to say."""

    @asynccontextmanager
    async def of(self, item: Item, session: Session) -> AsyncIterator[Site]:
        """A fresh place for an attempt; gone afterwards. Raises: GitError, SandboxError."""

        def notice(text: str) -> None:
            self.notice(session.session_id, text)

        async with open_workspace(
            repository=self.repositories[item.repo],
            base_sha=item.base_sha,
            wish=item.recipe.workspace,
            folder=self.folder / f"{session.session_id}-{session.attempts + 1}",
            keep=self.keep,
            notice=notice,
        ) as workspace:
            env = tool_environment(
                self.inputs.environ, item.recipe.env, workspace.home, workspace.tmp
            )
            policy = partial(self.containment.policy, item, workspace, env)
            mechanism = self.containment.mechanism(item.recipe.sandbox)
            async with (
                open_network(item.recipe.sandbox, workspace.tmp, notice) as network,
                open_launcher(policy(network), mechanism) as launcher,
            ):
                setup = ForEach(policy(self.containment.setup_network(item)), mechanism)
                judged = JudgedWorkspace(workspace, item.recipe.patch, launcher, notice)
                yield Site(judged, launcher, workspace.tmp, setup)


async def open_sites(
    repositories: Mapping[str, Repository],
    inputs: Inputs,
    run_id: str,
    containment: Containment,
    *,
    keep: bool,
    notice: Callable[[str, str], None],
) -> Sites:
    """Ready to open sites, after what dead runs left is swept up."""
    cache = cache_folder(inputs.environ)
    notices = await sweep_stale(cache)
    return Sites(
        repositories=repositories,
        inputs=inputs,
        containment=containment,
        folder=worktrees_folder(cache) / run_id,
        keep=keep,
        notice=notice,
        notices=notices,
    )
