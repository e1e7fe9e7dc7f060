"""`replay`: a recorded session runs again with its model's recorded replies, and is compared.

Its tools really run, in a fresh work tree at the recorded base, under the rules that the recipe has
now. The run is complete (journal, database, reports) but stays out of the history.
"""

import json
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

from attrs import evolve, frozen

from harness_batch.app.containment import Look
from harness_batch.app.divergence import Difference, differences, renewed
from harness_batch.app.finish import reported
from harness_batch.app.options import Inputs, RunOptions, SandboxMode
from harness_batch.app.places import harness_of
from harness_batch.app.prepare import Prepared, prepare
from harness_batch.app.recorder import recording_of
from harness_batch.app.recordings import Source, save
from harness_batch.app.run import execute
from harness_batch.config.record import Config, ModelInfo
from harness_batch.errors import UsageError
from harness_batch.ids import new_id
from harness_batch.limits import Limits
from harness_batch.models.recording import Recording
from harness_batch.models.recording_file import recording_text
from harness_batch.plan.item import Item
from harness_batch.store.bus import EventBus
from harness_batch.store.disk import write_text
from harness_batch.store.folder import RunFolder
from harness_batch.store.masking import Mask
from harness_batch.store.story import story_of_journal

Outcome = Literal["same", "differs", "errored", "interrupted"]


@frozen(kw_only=True)
class Wishes:
    """What the command line says about how to replay."""

    repo: str | None = None
    ref: str | None = None
    recipe: Path | None = None
    out: Path | None = None
    sandbox: SandboxMode = "auto"
    limits: Callable[[tuple[str, ...]], Limits]
    """Reads `--limit KEY=VALUE` of the recorded command line."""
    argv: tuple[str, ...] = ()


@frozen(kw_only=True)
class Replayed:
    """A replay that is over."""

    outcome: Outcome
    differences: tuple[Difference, ...]
    words: str
    """What became of the session, in one line."""
    folder: Path
    """Of the run; gone when nothing differs and no `--out` was named."""
    exit_code: int


@frozen(kw_only=True)
class Replay:
    """One recorded session, ready to run again."""

    source: Source
    inputs: Inputs
    """Of the invocation: where it is, its environment and configuration."""
    config: Config
    wishes: Wishes
    place: Path
    """A folder of its own, for what the run needs and leaves."""
    mask: Mask

    @property
    def folder(self) -> RunFolder:
        """Of the run."""
        return RunFolder(self.wishes.out or self.place / "run")

    def prepared(self) -> Prepared:
        """A plan of just this session, its model the recording. Raises: UserError, GitError."""
        recording = self.source.recording
        self.place.mkdir(parents=True, exist_ok=True)
        file = self.place / "recording.json"
        write_text(file, self.mask(recording_text(recording)))
        inputs = self._inputs(file)
        prepared = self._planned(inputs)
        item = self._item(prepared)
        if recording.agent and item.agent.name != recording.agent:
            prepared = prepare(evolve(inputs, agent=recording.agent), self.config)
            item = self._item(prepared)
        # It was granted its models when it was recorded, and asks none now.
        item = evolve(item, small_model=None, refusal=None)
        return evolve(prepared, plan=evolve(prepared.plan, items=(item,)))

    async def run(
        self, prepared: Prepared, watch: Callable[[EventBus], Awaitable[None]]
    ) -> Replayed:
        """Run and compare. Raises: HarnessError."""
        finished = await execute(
            prepared,
            self.inputs,
            RunOptions(jobs=1, sandbox=self.wishes.sandbox, argv=self.wishes.argv),
            look=Look(self.inputs.environ, self.wishes.sandbox),
            folder=self.folder,
            history=None,
            mask=self.mask,
            watch=watch,
        )
        then, (session,) = self.source.recording, finished.report.sessions
        story = story_of_journal(self.folder.journal, session.session_id)
        now = recording_of(story, lambda _: ModelInfo())
        found = differences(then, now)
        words = f"{now.sessions[0].status}" + (f": {session.detail}" if session.detail else "")
        return Replayed(
            outcome=_outcome(then, now, found, finished.exit_code),
            differences=found,
            words=words,
            folder=self.folder.path,
            exit_code=finished.exit_code,
        )

    def accept(self) -> None:
        """Write what came out as the new recording. Raises: UserError, StorageError."""
        (root,) = _roots(self.folder)
        now = recording_of(story_of_journal(self.folder.journal, root), lambda _: ModelInfo())
        new = renewed(self.source.recording, now)
        save(self.source, new, self.source.accepted, self.mask)

    def clear(self) -> None:
        """Remove what the run left, but for a folder that the user named."""
        shutil.rmtree(self.place, ignore_errors=True)

    def _planned(self, inputs: Inputs) -> Prepared:
        base = self.source.recording.base
        try:
            return prepare(inputs, self.config)
        except UsageError as error:
            if base is None or base not in str(error):
                raise
            told = f"{self.source.name}: {error}; fetch it (a shallow clone may lack it)"
            raise UsageError(f"{told}, name its repository with --repo, or another --ref") from None

    def _inputs(self, file: Path) -> Inputs:
        recording, wishes = self.source.recording, self.wishes
        recipe = wishes.recipe or self.source.recipe
        if recipe is None:
            told = f"{self.source.name}: its recipe {recording.recipe} is not there"
            raise UsageError(f"{told}; name it with --recipe FILE")
        parameters = self.place / "params.json"
        write_text(parameters, json.dumps(recording.params))
        repo = wishes.repo or self.source.repo
        return evolve(
            self.inputs,
            recipes=(str(recipe),),
            parameter_files=(parameters,),
            model=f"replay/{file}",
            repos=(repo,) if repo else (),
            ref=wishes.ref or recording.base,
            rules=tuple(pair for pair in recording.options if pair[0] != "limit"),
            limits=wishes.limits(tuple(t for name, t in recording.options if name == "limit")),
        )

    def _item(self, prepared: Prepared) -> Item:
        wanted = self.source.recording
        items = [item for item in prepared.plan.items if item.matrix == wanted.matrix]
        if len(items) != 1:
            row = ", ".join(f"{key}={value}" for key, value in wanted.matrix.items()) or "no matrix"
            file = self.wishes.recipe or self.source.recipe
            told = f"{self.source.name}: {file} has {len(items)} items for {wanted.item} ({row})"
            raise UsageError(f"{told}; the recipe's matrix has changed, record the session again")
        return items[0]


def place_for(cwd: Path) -> Path:
    """A fresh folder for one replay. Raises: StorageError."""
    return harness_of(cwd) / "cache" / "replays" / new_id("run")


def _roots(folder: RunFolder) -> tuple[str, ...]:
    return tuple(session.session_id for session in reported(folder).sessions)


def _outcome(
    then: Recording, now: Recording, found: tuple[Difference, ...], exit_code: int
) -> Outcome:
    if exit_code in (130, 143):
        return "interrupted"
    old, new = then.sessions[0], now.sessions[0]
    if new.status == "errored" and old.reason != new.reason and not _of_model(new.reason):
        return "errored"
    return "differs" if found else "same"


def _of_model(reason: str | None) -> bool:
    return (reason or "").startswith(("provider_", "context_overflow"))
