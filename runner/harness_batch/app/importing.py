"""Transcripts of other agents into the history: all of the files, or nothing of them.

Every session becomes a run of its own with ids that the transcript decides, so importing it again
replaces it. Known secrets and what looks like a key are masked before anything is written.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from attrs import evolve, frozen

from harness_batch.config.record import Config
from harness_batch.errors import Fault, FaultyInput
from harness_batch.messages import TokenUsage
from harness_batch.models.catalog import known, of_catalog
from harness_batch.models.pricing import cost
from harness_batch.records import ModelCall
from harness_batch.sandbox.environment import secret_values
from harness_batch.store.database import Database
from harness_batch.store.history import merge
from harness_batch.store.masking import Mask, mapped
from harness_batch.store.rows import Rows
from harness_batch.store.spellings import MASKED
from harness_batch.transcripts.as_events import Family, families, run_events
from harness_batch.transcripts.door import read_transcripts
from harness_batch.transcripts.record import Called, Transcript

KEYS: Final = re.compile(
    r"\bsk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{20,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{36,}|\bgithub_pat_[A-Za-z0-9_]{22,}|\bglpat-[A-Za-z0-9_-]{20,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{35}|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:(?!-----BEGIN ).)*?-----END [A-Z ]*PRIVATE KEY-----",
    re.DOTALL,
)
"""Keys by the shape that their makers gave them; none is looked for beyond the next beginning, as
a text of beginnings alone would take for ever."""
_BATCH: Final = 20_000


@frozen(kw_only=True)
class Imported:
    """One session of the plan that is in the history now, its children with it."""

    file: Path
    agent: str
    run_id: str
    sessions: int
    models: tuple[str, ...]
    usage: TokenUsage


def import_transcripts(
    files: Sequence[Path], history: Path, config: Config, environ: Mapping[str, str]
) -> tuple[Imported, ...]:
    """Read all files, then write all of them in one transaction. Blocks.

    Raises: FaultyInput with the faults of all files; StorageError. Nothing is written then.
    """
    found = list(_read_all(files))
    mask = Mask((*config.secrets, *secret_values(environ)))
    prices = _Prices(config)

    def masked(text: str) -> str:
        return KEYS.sub(MASKED, mask(text))

    with TemporaryDirectory(prefix="harness-batch-import-") as folder:
        database = Database(Path(folder, "import.duckdb"))
        rows = Rows()
        told = []
        with database:
            for file, family in found:
                for number, event in enumerate(run_events(family, prices.priced), 1):
                    rows.take(evolve(event, payload=mapped(event.payload, masked)))
                    if number % _BATCH == 0:
                        database.write(rows.drain())
                database.write(rows.drain())
                told.append(_imported(file, family, event.run_id))
            database.close(rows.reached)
        merge(database.path, history)
    return tuple(told)


def _read_all(files: Sequence[Path]) -> Iterator[tuple[Path, Family]]:
    """One family a session; of two files with the same one the later counts."""
    faults: list[Fault] = []
    by_session: dict[tuple[str, str], tuple[Path, Transcript]] = {}
    for file in files:
        try:
            for one in read_transcripts(file):
                by_session[one.agent, one.id] = (file, one)
        except FaultyInput as error:
            faults += error.faults
    if faults:
        raise FaultyInput(faults)
    for agent in dict.fromkeys(agent for agent, _ in by_session):
        mine = {key[1]: found for key, found in by_session.items() if key[0] == agent}
        for family in families([one for _, one in mine.values()]):
            yield mine[family.root.id][0], family


def _imported(file: Path, family: Family, run_id: str) -> Imported:
    everyone = (family.root, *family.children)
    return Imported(
        file=file,
        agent=family.root.agent,
        run_id=run_id,
        sessions=len(everyone),
        models=tuple(dict.fromkeys(model for one in everyone for model in one.models)),
        usage=sum((one.usage for one in everyone), TokenUsage()),
    )


@frozen
class _Prices:
    """What calls of other agents cost, by our own prices of their day."""

    config: Config

    def priced(self, row: ModelCall, called: Called) -> ModelCall:
        """The row with its cost, when all its prices are known."""
        settings = self.config.providers.get(called.provider) or of_catalog(called.provider)
        moment = datetime.fromisoformat(row.started_at)
        prices = known(settings, called.model).at(moment).prices
        usd = None if called.usage is None else cost(called.usage, prices)
        if usd is None or prices is None:
            return row
        return evolve(row, cost_usd=usd, cost_source=prices.source, price_version=prices.version)
