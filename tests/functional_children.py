"""Sessions with children through the command line: one provider, a script for each model.

ran = carry_out(folder, Family(models={"lead": [...], "helper": [...]}, agents={...}))
ran.rows("SELECT ... FROM session"); ran.requests_of("helper"); ran.call("show", child)
"""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import trio
from attrs import Factory, frozen

from functional_cli import KEY, PATIENCE_SECONDS, PRICES, Bench
from wire import Reply, Say, Seen, Tries, serve
from wire.script import Answer, Script

Json = dict[str, Any]
Chooser = Callable[[Seen], Answer]

CHILD_ID = re.compile(r"ses_[0-9A-Z]{26}")


@frozen(kw_only=True)
class Family:
    """A recipe, its agents, and what each model says. The recipe's model is `lead`."""

    models: Mapping[str, Script | Chooser]
    agents: Mapping[str, Json] = Factory(dict)
    recipe: Json = Factory(dict)
    recipes: Mapping[str, Json] = Factory(dict)
    """Further recipe files by name, beside the recipe."""
    form: str = "anthropic"
    arguments: tuple[str, ...] = ()
    stop_when: Callable[[Seen], bool] | None = None
    """SIGINT goes to the run when a request like this arrives."""
    config: Json = Factory(dict)


@frozen(kw_only=True)
class FamilyRun:
    """A run that ended."""

    bench: Bench
    exit_code: int
    stdout: str
    stderr: str
    folder: Path
    requests: tuple[Seen, ...]

    def requests_of(self, model: str) -> list[Seen]:
        """What the server was asked as that model, in order."""
        return [seen for seen in self.requests if seen.model == model]

    def rows(self, sql: str) -> list[Json]:
        """What the run's database answers."""
        with duckdb.connect(str(self.folder / "run.duckdb"), read_only=True) as connection:
            cursor = connection.execute(sql)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def row(self, sql: str) -> Json:
        """The one row that it answers."""
        (row,) = self.rows(sql)
        return row

    @property
    def children(self) -> list[Json]:
        """Rows of the child sessions, oldest first."""
        return self.rows("SELECT * FROM session WHERE depth > 0 ORDER BY started_at, session_id")

    @property
    def top(self) -> Json:
        """The row of the item's own session."""
        return self.row("SELECT * FROM session WHERE depth = 0")

    def call(self, *arguments: str) -> str:
        """stdout of another command of the command line."""
        done = subprocess.run(
            [sys.executable, "-m", "harness_batch", *arguments],
            cwd=self.bench.project,
            env=self.bench.environment(),
            capture_output=True,
            check=True,
        )
        return done.stdout.decode()


def results_in(seen: Seen) -> list[str]:
    """The tool results that came after the newest reply, as text."""
    results: list[str] = []
    for message in seen.json["messages"]:
        content = message["content"]
        if message["role"] == "assistant":
            results = []
        elif message["role"] == "tool":
            results.append(content)
        elif isinstance(content, list):
            results += [b["content"] for b in content if b["type"] == "tool_result"]
    return results


def texts_in(seen: Seen) -> list[str]:
    """The texts of the newest message of a request."""
    content = seen.json["messages"][-1]["content"]
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content if block["type"] == "text"]


def tool_names(seen: Seen) -> list[str]:
    """The tools that a request declares."""
    return [tool.get("name") or tool["function"]["name"] for tool in seen.json["tools"]]


def without_marks(body: bytes) -> bytes:
    """A request without its cache marks, which move on."""
    return re.sub(rb',"cache_control":\{[^{}]*\}', b"", body)


def begins_like(later: Seen, earlier: Seen) -> bool:
    """The later request starts with the bytes of the earlier, up to its messages' end."""
    head, found, _ = without_marks(earlier.body).rpartition(b"],")
    assert found
    return without_marks(later.body).startswith(head)


def carry_out(folder: Path, family: Family, files: Mapping[str, str] = {}) -> FamilyRun:
    """Run the recipe as one run of the command line."""
    bench = Bench(folder)
    bench.set_up(files)
    return trio.run(partial(_carry_out, bench, family))


def validated(folder: Path, family: Family) -> tuple[int, str]:
    """Exit code and words of `validate`; nothing is served."""
    bench = Bench(folder)
    bench.set_up()
    recipe, config = _written(bench, family, "http://127.0.0.1:9")
    done = subprocess.run(
        [sys.executable, "-m", "harness_batch", "validate", recipe, "--config", config],
        cwd=bench.project,
        env=bench.environment(),
        capture_output=True,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr).decode()


async def _carry_out(bench: Bench, family: Family) -> FamilyRun:
    asked = trio.Event()

    def answer(seen: Seen) -> Answer:
        if family.stop_when is not None and family.stop_when(seen):
            asked.set()
        said = family.models[seen.model]
        if callable(said):
            return said(seen)
        step = said[seen.step] if seen.step < len(said) else Reply(Say("Nothing more to do."))
        return step.answers[-1] if isinstance(step, Tries) else step

    async with serve(answer, key=KEY, models=list(family.models)) as server:
        recipe, config = _written(bench, family, server.anthropic_url)
        with trio.fail_after(PATIENCE_SECONDS):
            done = await _run(bench, recipe, config, family, asked)
        requests = tuple(server.requests)
    folders = list((bench.project / ".harness" / "runs").glob("run_*"))
    out, err = done.stdout.decode(), done.stderr.decode()
    assert len(folders) == 1, f"no run: exit {done.returncode}\n{out}\n{err}"
    return FamilyRun(
        bench=bench,
        exit_code=done.returncode,
        stdout=out,
        stderr=err,
        folder=folders[0],
        requests=requests,
    )


async def _run(
    bench: Bench, recipe: str, config: str, family: Family, asked: trio.Event
) -> subprocess.CompletedProcess[bytes]:
    argv = [sys.executable, "-m", "harness_batch", "run", recipe, "--config", config]
    out, err = bench.folder / "stdout", bench.folder / "stderr"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        started = partial(
            trio.run_process,
            [*argv, *family.arguments],
            cwd=bench.project,
            env=bench.environment(),
            stdout=stdout,
            stderr=stderr,
            check=False,
        )
        async with trio.open_nursery() as nursery:
            process: trio.Process = await nursery.start(started)
            if family.stop_when is not None:
                await asked.wait()
                process.send_signal(signal.SIGINT)
            code = await process.wait()
    return subprocess.CompletedProcess(argv, code, out.read_bytes(), err.read_bytes())


def _written(bench: Bench, family: Family, url: str) -> tuple[str, str]:
    provider = {
        "type": family.form,
        "base_url": url if family.form == "anthropic" else f"{url}/v1",
        "api_key": "{env:WIRE_KEY}",
        "models": {
            name: {"context": 200_000, "output": 8000, "cost": PRICES} for name in family.models
        },
    }
    config = {"provider": {"wire": provider}, "agents": family.agents, **family.config}
    files = {"config.json": config}
    recipe = {"name": "family", "model": "wire/lead", "prompt": "Do it with help."}
    files["recipes/family.json"] = recipe | family.recipe
    for name, document in family.recipes.items():
        files[f"recipes/{name}"] = document
    for name, content in files.items():
        path = bench.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")
        path.chmod(0o600)
    return str(bench.folder / "recipes" / "family.json"), str(bench.folder / "config.json")
