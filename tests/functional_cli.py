"""The command line as a process, on a real repository, against a provider on loopback.

    ran = carry_out(folder, [Job("plain", MAIN_SCRIPT)])
    ran.exit_code; ran.session("plain").status; ran.session("plain").requests

Each job becomes a recipe, a provider and a model of its own name, so that many jobs share one run
and one server, and the server's log says which request belonged to which job.
"""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import duckdb
import trio
from attrs import Factory, field, frozen

from wire import Call, Reply, Say, Seen, Usage, serve
from wire.script import Script
from wire.server import Chooser

Form = Literal["anthropic", "openai-chat", "openai-responses"]
FORMS: tuple[Form, ...] = ("anthropic", "openai-chat")
Json = dict[str, Any]

KEY = "sk-wire-0123456789abcdefghij"
"""The provider's key; it comes from the environment."""
CANARY = "canary-7f3a9c51e2-not-for-files"
"""A secret of the runner's environment that has nothing to do with providers."""
PRICES = {"input": 3.0, "output": 15.0, "cache_read": 0.3, "cache_write": 3.75}
"""US dollars per million tokens."""
SMALL_PRICES = {"input": 1.0, "output": 2.0, "cache_read": 0.1, "cache_write": 1.25}
"""Of small models."""
PATIENCE_SECONDS = 180
"""A run that takes longer hangs."""

SOURCE = '''"""Prices of the little shop."""


def total(prices: list[float]) -> float:
    """The sum, in euros (€)."""
    return sum(prices) + 1
'''
TEST = """import unittest

from shop.prices import total


class TotalTest(unittest.TestCase):
    def test_total(self) -> None:
        self.assertEqual(total([1.0, 2.0]), 3.0)
"""
NOTES = "Prices are in euros.\n"

RUN_TESTS = "python3 -m unittest -q tests.test_prices"
READ = Call("read", {"file_path": "shop/prices.py"})
BASH = Call("bash", {"command": RUN_TESTS})
EDIT = Call(
    "edit",
    {
        "file_path": "shop/prices.py",
        "old_string": "    return sum(prices) + 1",
        "new_string": "    return sum(prices)  # €, not 1 € more ✓",
    },
)
ANSWER = "The total was 1 € too high; it is mended ✓."
USAGES = (
    Usage(input=1000, output=50, cache_write_5m=200),
    Usage(input=20, output=40, cache_read=1200, cache_write_5m=100),
    Usage(input=30, output=60, cache_read=1300),
    Usage(input=40, output=30, cache_read=1300, cache_write_5m=60),
    Usage(input=50, output=25, cache_read=1360),
)
MAIN_SCRIPT: Script = (
    Reply(Say("Ich lese zuerst: größer als erwartet? 🌤"), READ, usage=USAGES[0]),
    Reply(BASH, usage=USAGES[1]),
    Reply(Say("There is one too many."), EDIT, usage=USAGES[2]),
    Reply(BASH, usage=USAGES[3]),
    Reply(Say(ANSWER), usage=USAGES[4]),
)
"""Look, see the test fail, mend, see it pass, answer."""

MAIN_RECIPE: Json = {
    "prompt": "A test of this repository fails. Mend the code, not the test.",
    "permissions": {"edit": {"shop/**": "allow"}, "bash": {"python3 -m unittest *": "allow"}},
    "checks": [{"name": "tests", "run": RUN_TESTS}],
    "expect": {"patch": "required", "touches": ["shop/**"]},
    "patch": {"message": "Sum prices without the one too many"},
}


@frozen
class Job:
    """One conversation: a recipe, a provider and a model, all named `name`."""

    name: str
    script: Script | Chooser
    form: Form = "anthropic"
    recipe: Mapping[str, Any] = Factory(dict)
    """In place of keys of MAIN_RECIPE; None takes a key out."""
    provider: Mapping[str, Any] = Factory(dict)
    """In place of keys of the provider's settings."""
    model: Mapping[str, Any] = Factory(lambda: {"context": 200_000, "output": 8000, "cost": PRICES})
    known: bool = True
    """The server knows the model."""
    small: Chooser | None = None
    """What the small model says that summarises; None: the model itself does."""
    small_model: Mapping[str, Any] = Factory(lambda: {"context": 200_000, "cost": SMALL_PRICES})


@frozen(kw_only=True)
class Outcome:
    """One job's session and all that was written down of it."""

    row: Json
    attempts: list[Json]
    calls: list[Json]
    """`model_call` rows in order."""
    tools: list[Json]
    decisions: list[Json]
    checks: list[Json]
    messages: list[Json]
    patches: list[Json]
    requests: list[Seen]
    """What the server saw of it."""
    case: ET.Element
    """The session's JUnit case."""
    folder: Path
    """The last attempt's."""

    @property
    def status(self) -> str:
        return str(self.row["status"])

    @property
    def reason(self) -> str | None:
        reason: str | None = self.row["reason"]
        return reason

    @property
    def detail(self) -> str:
        return str(self.row["detail"])

    @property
    def patch(self) -> bytes | None:
        """Without the lines that hold time and commit."""
        path = self.folder / "change.patch"
        if not path.exists():
            return None
        lines = path.read_bytes().split(b"\n")
        return b"\n".join(line for line in lines if not line.startswith((b"Date: ", b"From ")))

    @property
    def transcript(self) -> str:
        return (self.folder / "transcript.md").read_text(encoding="utf-8")

    @property
    def verdict(self) -> tuple[str, str] | None:
        """JUnit's: tag and type; None when it passed."""
        bad = [child for child in self.case if child.tag in ("failure", "error", "skipped")]
        assert len(bad) <= 1
        return (bad[0].tag, bad[0].attrib["type"]) if bad else None


@frozen(kw_only=True)
class Ran:
    """A run that ended."""

    exit_code: int
    stdout: str
    stderr: str
    project: Path
    folder: Path
    """The run's folder."""
    requests: tuple[Seen, ...]
    tables: Mapping[str, list[Json]]
    cases: Mapping[str, ET.Element]
    events: tuple[Json, ...]

    def session(self, name: str) -> Outcome:
        """The session of the job."""
        (row,) = (row for row in self.tables["session"] if row["item_key"] == name)

        def mine(table: str) -> list[Json]:
            rows = self.tables[table]
            return [one for one in rows if one["session_id"] == row["session_id"]]

        return Outcome(
            row=row,
            attempts=mine("attempt"),
            calls=mine("model_call"),
            tools=mine("tool_call"),
            decisions=mine("permission_decision"),
            checks=mine("check_result"),
            messages=mine("message"),
            patches=mine("patch"),
            requests=[seen for seen in self.requests if seen.body and seen.model == name],
            case=self.cases[name],
            folder=self.folder / "items" / row["folder"] / f"attempt-{row['attempts']}",
        )

    def events_of(self, name: str, kind: str) -> list[Json]:
        """The journal's events of one kind and job."""
        session_id = self.session(name).row["session_id"]
        return [e for e in self.events if (e["type"], e["session_id"]) == (kind, session_id)]


@frozen
class Bench:
    """A project, a home and a configuration, all private."""

    folder: Path
    environ: Mapping[str, str] = Factory(dict)
    """Beyond the few variables that are always set."""
    wrapper: Sequence[str] = ()
    """What the command line is started by."""
    project: Path = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "project", self.folder / "project")

    def set_up(self, extra: Mapping[str, str] = {}) -> None:
        """Make the repository, one commit, a test that fails. `extra`: more files."""
        files = {"shop/prices.py": SOURCE, "tests/test_prices.py": TEST, "NOTES.md": NOTES}
        for name, text in {**files, "shop/__init__.py": "", **extra}.items():
            path = self.project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for place in ("home", "tmp", "recipes"):
            (self.folder / place).mkdir(exist_ok=True)
        self._git("init", "-q", "-b", "main")
        self._git("add", "-A")
        who = ("-c", "user.name=Shop", "-c", "user.email=shop@example.invalid")
        self._git(*who, "commit", "-q", "-m", "A shop with a failing test")

    def _git(self, *arguments: str) -> None:
        subprocess.run(
            ["git", "-C", str(self.project), *arguments], check=True, env=self.environment()
        )

    def environment(self) -> dict[str, str]:
        """All that the process sees."""
        home = str(self.folder / "home")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        fixed = {"PATH": path, "HOME": home, "LANG": "C.UTF-8"}
        fixed |= {"XDG_CACHE_HOME": f"{home}/cache", "XDG_CONFIG_HOME": f"{home}/config"}
        fixed |= {"TMPDIR": str(self.folder / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
        return {**fixed, "WIRE_KEY": KEY, "DATABASE_PASSWORD": CANARY, **self.environ}

    def write_job(self, job: Job, url: str) -> tuple[Path, Json]:
        """The recipe's file, and the job's entry under `provider`."""
        recipe = {"name": job.name, "model": f"{job.name}/{job.name}", **MAIN_RECIPE, **job.recipe}
        recipe = {key: value for key, value in recipe.items() if value is not None}
        models = {job.name: job.model}
        if job.small is not None:
            recipe |= {"small_model": f"{job.name}/{job.name}-small"}
            models |= {f"{job.name}-small": job.small_model}
        path = self.folder / "recipes" / f"{job.name}.json"
        path.write_text(json.dumps(recipe), encoding="utf-8")
        provider = {
            "type": job.form,
            "base_url": url if job.form == "anthropic" else f"{url}/v1",
            "api_key": "{env:WIRE_KEY}",
            "models": models,
            **job.provider,
        }
        return path, provider

    async def run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Call the command line in the project. Raises: TooSlowError when it hangs."""
        with trio.fail_after(PATIENCE_SECONDS):
            return await trio.run_process(
                [*self.wrapper, sys.executable, "-m", "harness_batch", *arguments],
                cwd=self.project,
                env=self.environment(),
                capture_stdout=True,
                capture_stderr=True,
                check=False,
            )


def carry_out(
    folder: Path,
    jobs: Sequence[Job],
    *arguments: str,
    files: Mapping[str, str] = {},
    environ: Mapping[str, str] = {},
    wrapper: Sequence[str] = (),
) -> Ran:
    """Run all jobs as one run of the command line, and read what it left."""
    bench = Bench(folder, environ, wrapper)
    bench.set_up(files)
    return trio.run(partial(_carry_out, bench, jobs, arguments))


async def _carry_out(bench: Bench, jobs: Sequence[Job], arguments: Sequence[str]) -> Ran:
    scripts = {job.name: job.script for job in jobs if job.known}
    scripts |= {f"{job.name}-small": job.small for job in jobs if job.small is not None}
    async with serve(scripts, key=KEY) as server:
        written = [bench.write_job(job, server.anthropic_url) for job in jobs]
        config = bench.folder / "config.json"
        providers = {job.name: provider for job, (_, provider) in zip(jobs, written, strict=True)}
        config.write_text(json.dumps({"provider": providers}), encoding="utf-8")
        config.chmod(0o600)
        recipes = [str(path) for path, _ in written]
        done = await bench.run("run", *recipes, "--config", str(config), *arguments)
        requests = tuple(server.requests)
    out, err = done.stdout.decode(), done.stderr.decode()
    folders = list((bench.project / ".harness" / "runs").glob("run_*"))
    assert len(folders) == 1, f"no run: exit {done.returncode}\n{out}\n{err}"
    return read_run(bench, folders[0], done.returncode, (out, err), requests)


def read_run(
    bench: Bench, folder: Path, code: int, said: tuple[str, str], requests: Sequence[Seen]
) -> Ran:
    """Everything that a finished run left in its folder."""
    junit = ET.parse(folder / "junit.xml").getroot()
    lines = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return Ran(
        exit_code=code,
        stdout=said[0],
        stderr=said[1],
        project=bench.project,
        folder=folder,
        requests=tuple(requests),
        tables=_tables(folder / "run.duckdb"),
        cases={case.attrib["name"]: case for case in junit.iter("testcase")},
        events=tuple(json.loads(line) for line in lines),
    )


_ORDER = {
    "session": "started_at",
    "attempt": "n",
    "model_call": 'step, "try"',
    "tool_call": "started_at, tool_call_id",
    "permission_decision": "decided_at",
    "check_result": "name",
    "message": "created_at, message_id",
    "patch": "sha256",
}


def _tables(database: Path) -> dict[str, list[Json]]:
    with duckdb.connect(str(database), read_only=True) as connection:
        found = {}
        for table, order in _ORDER.items():
            cursor = connection.execute(f"SELECT * FROM {table} ORDER BY {order}")
            names = [column[0] for column in cursor.description or ()]
            found[table] = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        return found
