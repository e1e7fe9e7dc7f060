"""Composes the child sessions that a session's tools start: records, models, folder, attempt.

A child works at its parent's site: it has no workspace to open and leaves no patch of its own.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from attrs import evolve, frozen

from harness_batch.app.attempts import Mask, Models, cleared_up, next_attempt, refused
from harness_batch.app.resume import ended_as
from harness_batch.engine.admission import Admission
from harness_batch.engine.attempt import AttemptRun
from harness_batch.engine.conversation import Agenda
from harness_batch.engine.family import Child, Parent
from harness_batch.engine.log import AttemptLog, Log, timestamp
from harness_batch.engine.prompt import ProjectFile
from harness_batch.engine.session import Place, SessionRun
from harness_batch.engine.site import Change, Site, Workspace
from harness_batch.engine.stop import StopSignal
from harness_batch.errors import UserError
from harness_batch.events import SessionCreated, SessionUpdated
from harness_batch.ids import new_id
from harness_batch.messages import JsonObject, ModelRef
from harness_batch.plan.child_items import ChildItems
from harness_batch.plan.choice import Wrong
from harness_batch.plan.item import Item
from harness_batch.records import Attempt, Session
from harness_batch.store.folder import RunFolder
from harness_batch.tools.protocol import Secrets, Tool


@frozen(kw_only=True)
class ChildRuns:
    """`ChildSessions` of one run."""

    run_id: str
    items: ChildItems
    log: Log
    folder: RunFolder
    notes: Callable[[Item], tuple[ProjectFile, ...]]
    date: str
    platform: str
    connected: Callable[[Item], Models]
    """Raises: UserError."""
    shown: Callable[[ModelRef], str]
    """A model's name for records."""
    tools: Callable[[Item], tuple[Tool, ...]]
    write: Callable[[Path, bytes], None]
    mask: Mask
    admission: Admission
    secrets: Secrets
    """The runner's; no output may hold one."""

    def agents(self, parent: Item) -> Mapping[str, str]:
        """See `ChildSessions`."""
        return self.items.agents(parent)

    def of_agent(self, parent: Item, agent: str, prompt: str) -> Item | str:
        """See `ChildSessions`."""
        return _or_words(self.items.of_agent(parent, agent, prompt))

    def of_recipe(self, parent: Item, name: str, arguments: JsonObject) -> Item | str:
        """See `ChildSessions`."""
        sub = next(sub for sub in parent.recipe.sub_recipes if sub.name == name)
        return _or_words(self.items.of_recipe(parent, sub, arguments))

    def begin(self, item: Item, parent: Parent) -> Session:
        """See `ChildSessions`."""
        session = Session(
            session_id=new_id("ses"),
            run_id=self.run_id,
            item_key=item.key,
            item_digest=item.digest,
            recipe=item.recipe.name,
            agent=item.agent.name,
            model=self.shown(item.models[0]),
            parent_id=parent.session_id,
            depth=parent.depth + 1,
            params=item.params,
            repo=item.repo,
            ref=item.ref,
            base_sha=item.base_sha,
            started_at=timestamp(),
            recipe_file=str(item.recipe.file),
        )
        self.log.append(SessionCreated(session), session.session_id)
        return session

    async def run(self, child: Child, parent: Parent, stop: StopSignal) -> Attempt:
        """See `ChildSessions`."""
        session = child.session
        attempt = next_attempt(session)
        try:
            models = self.connected(child.item)
        except UserError as error:
            ended = refused(attempt, "provider_model", str(error), self.log)
        else:
            ended = await self._worked(child, parent, stop, attempt, models)
        child.session = ended_as(child.session, ended)
        self.log.append(SessionUpdated(child.session), session.session_id)
        return ended

    async def _worked(
        self, child: Child, parent: Parent, stop: StopSignal, attempt: Attempt, models: Models
    ) -> Attempt:
        place = partial(self._place, child.item, attempt.session_id)
        stop.begin(child.item.limits)
        first = AttemptRun(
            agenda=self._agenda(child, models, place(attempt.n)),
            attempt=attempt,
            log=AttemptLog(self.log, attempt.session_id, attempt.attempt_id),
            spend=child.spend,
            stop=stop,
            folder=place(attempt.n).folder,
            write=self.write,
        )
        run = SessionRun(current=first, open_site=lambda: _shared(parent.site), place=place)
        try:
            return await run.run()
        finally:
            child.carryover = run.current.agenda.carryover
            if (ref := run.answered_by) is not None:
                child.session = evolve(child.session, model=self.shown(ref))
            made = range(attempt.n, run.current.attempt.n + 1)
            outputs = [place(n).outputs for n in made]
            await cleared_up(models, outputs, self.mask, self.log, attempt.session_id)

    def _place(self, item: Item, session_id: str, n: int) -> Place:
        folder = self.folder.child_attempt(item.folder, session_id, n)
        return Place(folder.path, folder.outputs)

    def _agenda(self, child: Child, models: Models, place: Place) -> Agenda:
        return Agenda(
            item=child.item,
            model=models.main,
            small_model=models.small,
            fallbacks=models.fallbacks,
            tools=self.tools(child.item),
            policy=child.policy,
            notes=self.notes(child.item),
            date=self.date,
            platform=self.platform,
            outputs=place.outputs,
            secrets=self.secrets,
            child_sessions=self,
            depth=child.session.depth,
            carryover=child.carryover,
            admission=self.admission,
        )


@frozen
class SharedWorkspace:
    """The parent's workspace as a child has it: what is changed there is the parent's patch."""

    workspace: Workspace

    @property
    def root(self) -> Path:
        """Top of the work tree."""
        return self.workspace.root

    @property
    def cwd(self) -> Path:
        """Where the child starts."""
        return self.workspace.cwd

    async def change(self, message: str) -> Change:
        """Nothing of its own."""
        del message
        return Change(patch=None)

    async def reset(self) -> None:
        """Nothing: the parent's work is not a child's to throw away."""


@asynccontextmanager
async def _shared(site: Site) -> AsyncIterator[Site]:
    yield evolve(site, workspace=SharedWorkspace(site.workspace))


def _or_words(item: Item | Wrong) -> Item | str:
    return item.message if isinstance(item, Wrong) else item
