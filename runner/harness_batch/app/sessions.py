"""From an item of the plan to its session: composed, run and recorded."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from pathlib import Path

from attrs import Factory, evolve, frozen

from harness_batch.app.admissions import Admissions
from harness_batch.app.attempts import Models, cleared_up, next_attempt, refused
from harness_batch.app.child_sessions import ChildRuns
from harness_batch.app.prices import prices_of
from harness_batch.app.replays import Replays
from harness_batch.app.resume import ended_as
from harness_batch.config.record import Config
from harness_batch.engine.attempt import AttemptRun
from harness_batch.engine.budget import Budget
from harness_batch.engine.conversation import Agenda
from harness_batch.engine.log import AttemptLog, Log, timestamp
from harness_batch.engine.prompt import ProjectFile
from harness_batch.engine.session import Place, SessionRun
from harness_batch.engine.site import Site
from harness_batch.engine.spend import Spend
from harness_batch.engine.stop import StopSignal
from harness_batch.errors import UserError
from harness_batch.events import SessionCreated, SessionUpdated
from harness_batch.ids import new_id
from harness_batch.messages import ModelRef
from harness_batch.models.access import Keyring
from harness_batch.models.catalog import with_known
from harness_batch.models.protocol import Model
from harness_batch.models.table import connect
from harness_batch.permissions.judge import Policy
from harness_batch.plan.child_items import ChildItems
from harness_batch.plan.choice import FREE
from harness_batch.plan.item import Item
from harness_batch.records import Attempt, Session
from harness_batch.store.disk import write_bytes
from harness_batch.store.folder import RunFolder
from harness_batch.store.masking import Mask
from harness_batch.tools.protocol import Tool
from harness_batch.tools.skill import SkillTool
from harness_batch.tools.table import bundled_tools, final_output

PROVIDER_UNAVAILABLE = "provider_unavailable"
OpenSite = Callable[[Item, Session], AbstractAsyncContextManager[Site]]


@frozen(kw_only=True)
class Sessions:
    """Runs sessions; `run_one` and `skip` are what the scheduler calls."""

    run_id: str
    config: Config
    notes: Callable[[Item], tuple[ProjectFile, ...]]
    """What the system prompt of an item's session quotes."""
    log: Log
    folder: RunFolder
    budget: Budget
    """The run's; every session's hangs under it."""
    mask: Mask
    open_site: OpenSite
    refusal: Callable[[Item], str | None]
    """Words on what this host cannot give an item."""
    date: str
    platform: str
    child_items: ChildItems
    admissions: Admissions
    keyring: Keyring
    earlier: Mapping[str, Session] = Factory(dict)
    """Sessions of a resumed run that go on as a new attempt, by item key."""
    _replays: Replays = Factory(Replays)

    async def run_one(self, item: Item, stop: StopSignal) -> Session:
        """The session, ended. Raises: StorageError."""
        if item.refusal is None and self.admissions.closed(item.models):
            return self.skip(item, PROVIDER_UNAVAILABLE)
        session = self._created(item)
        attempt = next_attempt(session)
        if item.refusal is not None:
            return self._ended(session, refused(attempt, "grant", item.refusal, self.log, "policy"))
        if (told := self.refusal(item)) is not None:
            return self._ended(session, refused(attempt, "sandbox", told, self.log))
        await prices_of(item, self.config)
        try:
            models = self._connected(item)
        except UserError as error:
            return self._ended(session, refused(attempt, "provider_model", str(error), self.log))
        run = self._session_run(item, session, attempt, models, stop)
        try:
            ended = await run.run()
        finally:
            made = range(attempt.n, run.current.attempt.n + 1)
            outputs = [self._place(item, n).outputs for n in made]
            await cleared_up(models, outputs, self._mask_folder, self.log, session.session_id)
        if (ref := run.answered_by) is not None:
            session = evolve(session, model=self._shown(ref))
        return self._ended(session, ended)

    def skip(self, item: Item, reason: str) -> Session:
        """Record an item that is not run because the run was stopped."""
        session = self._created(item)
        words = {
            "interrupted": "the run was interrupted before its turn",
            "max_cost": "--max-cost of the run was used up before its turn",
            "max_time": "--max-time of the run was used up before its turn",
            "max_failures": "--max-failures of the run was reached before its turn",
            "storage": "the disk refused to take more before its turn",
            "internal": "a bug in the runner ended the run before its turn",
            PROVIDER_UNAVAILABLE: "its provider refused the key or had no credit, before its turn",
        }
        ended = evolve(
            session,
            status="skipped",
            reason=PROVIDER_UNAVAILABLE if reason == PROVIDER_UNAVAILABLE else "not_admitted",
            detail=words.get(reason, reason),
            finished_at=timestamp(),
        )
        self.log.append(SessionUpdated(ended), ended.session_id)
        return ended

    def _created(self, item: Item) -> Session:
        earlier = self.earlier.get(item.key)
        session = Session(
            session_id=earlier.session_id if earlier else new_id("ses"),
            run_id=self.run_id,
            item_key=item.key,
            item_digest=item.digest,
            recipe=item.recipe.name,
            agent=item.agent.name,
            model=self._shown(item.models[0]),
            params=item.params,
            matrix=item.matrix,
            repo=item.repo,
            ref=item.ref,
            base_sha=item.base_sha,
            attempts=earlier.attempts if earlier else 0,
            started_at=earlier.started_at if earlier else timestamp(),
            recipe_file=str(item.recipe.file),
            folder=item.folder,
        )
        self.log.append(SessionCreated(session), session.session_id)
        return session

    def _connected(self, item: Item) -> Models:
        """Raises: UserError."""
        if self.config.providers[item.models[0].provider].type == "replay":
            return self._replays.main(item)
        main, *fallbacks = map(self._connect, item.models)
        small = item.small_model
        own = small is None or small == item.models[0]
        return Models(
            main, main if own or small is None else self._connect(small), tuple(fallbacks)
        )

    def _child_connected(self, item: Item) -> Models:
        """Raises: UserError."""
        return self._replays.child(item) or self._connected(item)

    def _connect(self, ref: ModelRef) -> Model:
        settings = with_known(self.config.providers[ref.provider], ref.model)
        return connect(ref, settings, self.keyring)

    def _shown(self, model: ModelRef) -> str:
        # A scripted or recorded model is a file; its folder is this machine's business.
        is_file = self.config.providers[model.provider].type in FREE
        return f"{model.provider}/{Path(model.model).name}" if is_file else str(model)

    def _session_run(
        self,
        item: Item,
        session: Session,
        attempt: Attempt,
        models: Models,
        stop: StopSignal,
    ) -> SessionRun:
        place = self._place(item, attempt.n)
        agenda = Agenda(
            item=item,
            model=models.main,
            small_model=models.small,
            fallbacks=models.fallbacks,
            tools=_tools(item),
            policy=Policy(item.rules, item.agent.rules),
            notes=self.notes(item),
            date=self.date,
            platform=self.platform,
            outputs=place.outputs,
            secrets=self.mask,
            child_sessions=self._child_runs(),
            admission=self.admissions,
        )
        stop.begin(item.limits)
        first = AttemptRun(
            agenda=agenda,
            attempt=attempt,
            log=AttemptLog(self.log, session.session_id, attempt.attempt_id),
            spend=Spend(item.limits, Budget(item.limits.cost_usd, self.budget)),
            stop=stop,
            folder=place.folder,
            write=self._write,
            setup=item.recipe.workspace.setup,
        )
        return SessionRun(
            current=first,
            open_site=lambda: self.open_site(item, session),
            place=partial(self._place, item),
        )

    def _place(self, item: Item, n: int) -> Place:
        folder = self.folder.attempt(item.folder, n)
        return Place(folder.path, folder.outputs)

    def _child_runs(self) -> ChildRuns:
        return ChildRuns(
            run_id=self.run_id,
            items=self.child_items,
            log=self.log,
            folder=self.folder,
            notes=self.notes,
            date=self.date,
            platform=self.platform,
            connected=self._child_connected,
            shown=self._shown,
            tools=_tools,
            write=self._write,
            mask=self._mask_folder,
            admission=self.admissions,
            secrets=self.mask,
        )

    def _ended(self, session: Session, attempt: Attempt) -> Session:
        ended = ended_as(session, attempt)
        self.log.append(SessionUpdated(ended), ended.session_id)
        return ended

    def _write(self, path: Path, data: bytes) -> None:
        with suppress(OSError):  # an agent may have removed it; what is wrong the write says
            path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, self.mask.in_bytes(data))

    def _mask_folder(self, outputs: Path) -> tuple[str, ...]:
        """Secrets out of whole tool outputs; what could not be looked at, in words."""
        troubles: list[str] = []
        for file in outputs.iterdir():
            try:
                data = file.read_bytes()
            except OSError as error:  # a session that damages its own outputs stays alone with it
                troubles.append(f"{file} was not searched for secrets: {error.strerror}")
                continue
            if self.mask.finds(data):
                write_bytes(file, self.mask.in_bytes(data))
        return tuple(troubles)


def _tools(item: Item) -> tuple[Tool, ...]:
    schema = item.recipe.response_schema
    skills = item.equipment.skills
    return (
        *bundled_tools(),
        *((SkillTool(skills),) if skills else ()),
        *((final_output(schema),) if schema is not None else ()),
    )
