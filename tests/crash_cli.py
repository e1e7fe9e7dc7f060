"""The command line as a process that tests kill, starve and crowd, and what is left of it.

A `Stage` is a repository, a home, a cache, a TMPDIR and a run's folder of its own. Processes that
tools start carry a mark in their arguments, so that survivors can be found in /proc.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import pytest
import trio
import yaml
from attrs import field, frozen

from harness_batch.events import Event, Payload
from harness_batch.store.projection import rebuild
from harness_batch.store.replay import read_events

PATIENCE_S = 60.0
"""A test that waits longer for something has failed. Far above what a loaded machine needs."""
OURS = ("HARNESS_", "GITHUB_", "CI", "GIT_", "XDG_", "ANTHROPIC_", "OPENAI_", "PYTHONDONTWRITE")
"""Beginnings of variables that no run of a test inherits."""


@frozen
class Done:
    """A process that has ended."""

    code: int
    out: str
    err: str
    seconds: float

    def json(self) -> Any:
        """stdout, parsed."""
        return json.loads(self.out)


@frozen
class Stage:
    """Where the runs of one test happen."""

    root: Path
    mark: str = field(factory=lambda: f"hb-mark-{os.getpid()}-{os.urandom(6).hex()}")
    """Stands in the arguments of every process that `sleeper` starts."""

    @property
    def repo(self) -> Path:
        return self.root / "repo"

    @property
    def out(self) -> Path:
        """The run's folder."""
        return self.root / "out"

    @property
    def journal(self) -> Path:
        return self.out / "events.jsonl"

    @property
    def tmp(self) -> Path:
        return self.root / "tmp"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def worktrees(self) -> Path:
        return self.home / ".cache" / "harness-batch" / "worktrees"

    def environ(self, **more: str | None) -> dict[str, str]:
        """Of a run. None takes a variable away."""
        kept = {name: text for name, text in os.environ.items() if not name.startswith(OURS)}
        pyc = str(Path(__file__).parent.parent / ".pytest_cache" / "pyc")
        kept |= {"HOME": str(self.home), "TMPDIR": str(self.tmp), "PYTHONPYCACHEPREFIX": pyc}
        for name, text in more.items():
            kept.pop(name, None)
            if text is not None:
                kept[name] = text
        return kept

    def recipe(self, name: str = "work", **keys: Any) -> Path:
        """A recipe file; what it may do is everything unless told otherwise."""
        document = {
            "name": name,
            "model": f"scripted/{name}-script.yaml",
            "prompt": "Do it.",
            "permissions": {"bash": "allow", "edit": "allow"},
            **keys,
        }
        path = self.root / f"{name}.yaml"
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        return path

    def script(self, *steps: Mapping[str, Any], name: str = "work") -> None:
        """What the scripted model of the recipe of that name says."""
        path = self.root / f"{name}-script.yaml"
        path.write_text(yaml.safe_dump(list(steps), sort_keys=False))

    def config(self, base_url: str, **model: Any) -> Path:
        """A configuration with the provider `mine`, whose model is `m`, on a loopback server."""
        provider = {
            "type": "openai-chat",
            "base_url": base_url,
            "api_key": "k",
            "models": {"m": {"context": 128_000, "output": 1000, **model}},
        }
        path = self.root / "config.jsonc"
        path.write_text(json.dumps({"provider": {"mine": provider}}))
        return path

    def sleeper(self, seconds: int = 600) -> str:
        """A shell command that sleeps under the mark and ignores SIGTERM, SIGINT and SIGHUP."""
        return f"bash -c 'trap \"\" TERM INT HUP; exec -a {self.mark} sleep {seconds}'"

    def demons(self) -> str:
        """A shell command that leaves daemons behind in every way there is."""
        sleeper = self.sleeper()
        return (
            f"setsid {sleeper} & nohup {sleeper} >/dev/null 2>&1 & "
            f"( ( setsid {sleeper} & ) & ) ; disown -a; {sleeper}"
        )

    def survivors(self) -> list[str]:
        """Command lines of processes with the mark."""
        found = []
        for place in Path("/proc").iterdir():
            if place.name.isdigit() and int(place.name) != os.getpid():
                try:
                    words = (place / "cmdline").read_bytes()
                except OSError:
                    continue
                if self.mark.encode() in words:
                    found.append(words.replace(b"\0", b" ").decode(errors="replace"))
        return found

    async def nothing_survives(self, seconds: float = 5.0) -> None:
        """Wait until no process has the mark; dead ones take a moment to go."""
        with suppress(trio.TooSlowError):
            await eventually(lambda: not self.survivors(), seconds)
        assert self.survivors() == []

    async def something_lives(self, count: int = 1) -> None:
        """Wait until that many processes sleep under the mark."""
        await eventually(
            lambda: sum(words.startswith(self.mark) for words in self.survivors()) >= count
        )

    def argv(self, *words: str | Path) -> list[str]:
        return [sys.executable, "-m", "harness_batch", *map(str, words)]

    def in_out(self, *words: str | Path) -> tuple[str | Path, ...]:
        """The words of a run into `out`."""
        return ("run", *words, "--out", self.out, "--progress", "plain")

    async def call(
        self, *words: str | Path, cwd: Path | None = None, **environ: str | None
    ) -> Done:
        """The command line, to its end."""
        began = trio.current_time()
        with trio.fail_after(PATIENCE_S):
            done = await trio.run_process(
                self.argv(*words),
                stdin=subprocess.DEVNULL,
                capture_stdout=True,
                capture_stderr=True,
                check=False,
                cwd=cwd or self.repo,
                env=self.environ(**environ),
            )
        out, err = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
        return Done(done.returncode, out, err, trio.current_time() - began)

    @asynccontextmanager
    async def running(
        self, *words: str | Path, **environ: str | None
    ) -> AsyncIterator[trio.Process]:
        """The command line under way; dead at the end of the block, whatever happens."""
        with (self.root / "stdout").open("w") as out, (self.root / "stderr").open("w") as err:
            process = await trio.lowlevel.open_process(
                self.argv(*words),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=self.repo,
                env=self.environ(**environ),
            )
        try:
            yield process
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()

    async def until(
        self,
        wanted: Callable[[Event], bool],
        count: int = 1,
        process: trio.Process | None = None,
    ) -> None:
        """Wait until the journal holds so many events that are wanted, or the process has ended."""

        size = 0
        with trio.fail_after(PATIENCE_S):
            while process is None or process.poll() is None:
                if self.journal.exists() and self.journal.stat().st_size > size:
                    size = self.journal.stat().st_size
                    if sum(map(wanted, self.events())) >= count:
                        return
                await trio.sleep(0.01)

    def events(self) -> list[Event]:
        return list(read_events(self.journal))

    def payloads(self, *kinds: type[Payload]) -> list[Any]:
        return [event.payload for event in self.events() if isinstance(event.payload, kinds)]

    def statuses(self) -> dict[str, tuple[str | None, str | None, int]]:
        """Item key -> status, reason, attempts, as the database has them."""
        rows = self.ask("SELECT item_key, status, reason, attempts FROM session ORDER BY item_key")
        return {key: (status, reason, attempts) for key, status, reason, attempts in rows}

    def counts(self) -> Counter[str | None]:
        """How many sessions have which status."""
        return Counter(status for status, _, _ in self.statuses().values())

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.out / "run.duckdb"), read_only=True) as database:
            return database.execute(sql).fetchall()

    def folder(self, item_key: str) -> Path:
        """Of an item, under `items/`."""
        ((name,),) = self.ask(f"SELECT folder FROM report_session WHERE item_key = '{item_key}'")
        return self.out / "items" / str(name)

    def patch(self, item_key: str, attempt: int = 1) -> str:
        path = self.folder(item_key) / f"attempt-{attempt}" / "change.patch"
        return path.read_text() if path.exists() else ""

    def checkout(self) -> dict[str, str]:
        """Every file of the user's checkout and .git, by content; not what runs leave."""
        return {
            str(path.relative_to(self.repo)): hashlib.blake2b(path.read_bytes()).hexdigest()
            for path in sorted(self.repo.rglob("*"))
            if path.is_file() and ".harness" not in path.parts
        }

    def leftovers(self) -> list[str]:
        """What a run should have taken away: work trees, session folders, TMPDIRs."""
        places = [*self.worktrees.glob("*/*"), *self.tmp.glob("hb-*")]
        return [str(place) for place in places]

    def database_is_the_journal(self) -> None:
        """The database has row for row what the journal says."""
        again = self.root / "again.duckdb"
        again.unlink(missing_ok=True)
        rebuild(self.journal, again)
        assert _rows(self.out / "run.duckdb") == _rows(again)


async def eventually(holds: Callable[[], object], seconds: float = PATIENCE_S) -> None:
    """Wait until something outside of this process is so. Raises: TooSlowError."""
    with trio.fail_after(seconds):
        while not holds():  # noqa: ASYNC110 - nobody tells us
            await trio.sleep(0.02)


def _rows(path: Path) -> dict[str, list[str]]:
    with duckdb.connect(str(path), read_only=True) as database:
        tables = [
            name
            for (name,) in database.execute(
                "SELECT table_name FROM duckdb_tables() WHERE table_name <> 'schema_version'"
            ).fetchall()
        ]
        return {
            name: sorted(map(str, database.execute(f'SELECT * FROM "{name}"').fetchall()))
            for name in tables
        }


def stage_at(root: Path) -> Stage:
    """A stage with a repository of one commit."""
    stage = Stage(root)
    for folder in (stage.repo, stage.home, stage.tmp):
        folder.mkdir(parents=True)
    (stage.repo / "a.txt").write_text("one\n")
    (stage.repo / "docs").mkdir()
    (stage.repo / "docs" / "b.txt").write_text("two\n")
    commit(stage.repo)
    return stage


@contextmanager
def small_disk(place: Path, size: str, *options: str) -> Iterator[None]:
    """A file system of that size on the folder; the test is skipped where mounting is not ours."""
    place.mkdir(exist_ok=True)
    what = ["mount", "-t", "tmpfs", "-o", ",".join((f"size={size}", *options)), "none", str(place)]
    if os.getuid() or subprocess.run(what, check=False, capture_output=True).returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def grow(place: Path, size: str) -> None:
    """Make room."""
    subprocess.run(["mount", "-o", f"remount,size={size}", place], check=True)


def commit(repo: Path) -> None:
    """Everything in the folder as one commit of a (new) repository."""
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), (*identity, "commit", "-qm", "x")):
        subprocess.run(("git", "-C", repo, *words), check=True, capture_output=True)


def says(text: str, *calls: tuple[str, Mapping[str, Any]]) -> dict[str, Any]:
    """A step of a script."""
    return {"text": text, "calls": [{"name": name, "arguments": dict(a)} for name, a in calls]}


def bash(command: str, **more: Any) -> tuple[str, Mapping[str, Any]]:
    """A call of the shell."""
    return ("bash", {"command": command, **more})


def write(path: str, content: str) -> tuple[str, Mapping[str, Any]]:
    """A call that writes a file."""
    return ("write", {"file_path": path, "content": content})


def keys(payloads: Sequence[Any]) -> list[str]:
    """Item keys of session events."""
    return [payload.session.item_key for payload in payloads]
