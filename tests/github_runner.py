"""Plays the runner of GitHub Actions for a composite action, and GitHub's API, both on loopback.

    job = RunnerJob(folder, "pull_request", event, workspace)
    job.run(ACTION, recipes="recipes/r.yaml").outputs["conclusion"]

Expressions are those that our actions use: `inputs.x`, `runner.temp`, `github.action_path`,
`steps.x.outputs.y`, and conditions of them with `==`, `!=`, `&&` and `always()`.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml
from attrs import Factory, define, field, frozen

Json = dict[str, Any]

ROOT = Path(__file__).parents[1]
ACTION = ROOT / "action.yml"
APPLY = ROOT / "apply" / "action.yml"
INSTALLS = ("Install harness-batch", "Prepare the sandbox")
"""Steps that change the machine; the program under test stands where they would put it."""


@frozen(kw_only=True)
class Ended:
    """A job's steps are over."""

    code: int
    """Of the first step that failed, else 0."""
    outputs: Mapping[str, str]
    summary: str
    log: str
    steps: tuple[str, ...]
    """Names of the steps that were carried out."""


@define
class RunnerJob:
    """One job: its event, its files, its workspace."""

    folder: Path
    event_name: str
    event: Json
    workspace: Path
    environ: Mapping[str, str] = Factory(dict)
    temp: Path = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.temp = self.folder / "runner-temp"
        program = self.temp / "harness-batch" / "bin" / "harness-batch"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m harness_batch "$@"\n')
        program.chmod(0o755)
        (self.folder / "home").mkdir(exist_ok=True)

    def run(self, action: Path, **given: str) -> Ended:
        """Carry the action's steps out with these inputs (`_` for `-`)."""
        metadata = yaml.safe_load(action.read_text(encoding="utf-8"))
        inputs = {name: str(spec.get("default", "")) for name, spec in metadata["inputs"].items()}
        inputs |= {name.replace("_", "-"): value for name, value in given.items()}
        context = {f"inputs.{name}": value for name, value in inputs.items()}
        context |= {"runner.temp": str(self.temp), "github.action_path": str(action.parent)}
        code, log, done = 0, "", []
        summary = ""
        for number, step in enumerate(metadata["runs"]["steps"]):
            if step["name"] in INSTALLS or not _wanted(step.get("if"), context, failed=code != 0):
                continue
            done.append(step["name"])
            if "run" not in step:
                continue
            files = {name: self.folder / f"{name}-{number}" for name in ("output", "summary")}
            for file in files.values():
                file.write_text("")
            ended = self._step(step, context, files)
            log += ended.stdout + ended.stderr
            summary += files["summary"].read_text(encoding="utf-8")
            outputs = read_outputs(files["output"].read_text(encoding="utf-8"))
            context |= {f"steps.{step.get('id')}.outputs.{k}": v for k, v in outputs.items()}
            code = code or ended.returncode
        told = {
            name: _filled(spec["value"], context)
            for name, spec in metadata.get("outputs", {}).items()
        }
        return Ended(code=code, outputs=told, summary=summary, log=log, steps=tuple(done))

    def _step(
        self, step: Json, context: Mapping[str, str], files: Mapping[str, Path]
    ) -> subprocess.CompletedProcess[str]:
        script = self.folder / "step.sh"
        script.write_text(_filled(step["run"], context))
        place = _filled(step.get("working-directory", str(self.workspace)), context)
        env = self._environment(files)
        env |= {name: _filled(str(value), context) for name, value in step.get("env", {}).items()}
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
            cwd=place,
            env=env,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    def _environment(self, files: Mapping[str, Path]) -> dict[str, str]:
        event = self.folder / "event.json"
        event.write_text(json.dumps(self.event))
        home = self.folder / "home"
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            "XDG_CACHE_HOME": str(home / "cache"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": self.event_name,
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_OUTPUT": str(files["output"]),
            "GITHUB_STEP_SUMMARY": str(files["summary"]),
            "GITHUB_REPOSITORY": "shop/shop",
            "GITHUB_WORKSPACE": str(self.workspace),
            "RUNNER_TEMP": str(self.temp),
            **self.environ,
        }


def read_outputs(text: str) -> dict[str, str]:
    """As the runner reads GITHUB_OUTPUT: `name=value` and `name<<delimiter` blocks."""
    outputs: dict[str, str] = {}
    lines = iter(text.split("\n"))
    for line in lines:
        name, block, delimiter = line.partition("<<")
        if block:
            value = []
            for inner in lines:
                if inner == delimiter:
                    break
                value.append(inner)
            outputs[name] = "\n".join(value)
        elif "=" in line:
            key, _, told = line.partition("=")
            outputs[key] = told
    return outputs


def obeyed(log: str) -> list[str]:
    """The workflow commands of a log that the runner would carry out."""
    found: list[str] = []
    stopped: str | None = None
    for line in re.split(r"[\r\n]", log):
        if stopped is not None:
            if line.strip() == f"::{stopped}::":
                stopped = None
        elif match := re.match(r"\s*::stop-commands::(\S+)", line):
            stopped = match[1]
        elif re.match(r"\s*::\w[\w-]*( [^:]*)?::", line) or "##[" in line:
            found.append(line)
    return found


def _filled(text: str, context: Mapping[str, str]) -> str:
    return re.sub(r"\$\{\{\s*([\w.-]+)\s*\}\}", lambda found: context.get(found[1], ""), text)


def _wanted(condition: str | None, context: Mapping[str, str], *, failed: bool) -> bool:
    if condition is None:
        return not failed
    terms = [term.strip() for term in condition.split("&&")]
    if failed and "always()" not in terms:
        return False
    return all(_holds(term, context) for term in terms if term != "always()")


def _holds(term: str, context: Mapping[str, str]) -> bool:
    found = re.fullmatch(r"([\w.-]+)\s*(==|!=)\s*'([^']*)'", term)
    assert found, f"an expression that this runner does not know: {term}"
    return (context.get(found[1], "") == found[3]) == (found[2] == "==")


@define
class GitHubServer:
    """Issues, comments and pull requests of one repository, in memory."""

    url: str = ""
    comments: list[Json] = Factory(list)
    pulls: list[Json] = Factory(list)
    labels: dict[int, list[str]] = Factory(dict)
    tokens: set[str] = Factory(set)
    """What came as Authorization."""
    answer: tuple[int, Json] | None = None
    """In place of every answer, e.g. a refusal."""

    def reply(  # noqa: PLR0911 - one return for each call of the API
        self, method: str, path: str, query: Json, body: Json
    ) -> tuple[int, Any]:
        """Status and JSON, as GitHub answers."""
        if self.answer is not None:
            return self.answer
        below = path.removeprefix("/repos/shop/shop")
        if (method, below) == ("GET", ""):
            return 200, {"default_branch": "main"}
        match method, below.strip("/").split("/"):
            case "GET", ["issues", _, "comments"]:
                size, page = int(query["per_page"][0]), int(query["page"][0])
                return 200, self.comments[size * (page - 1) : size * page]
            case "POST", ["issues", _, "comments"]:
                made = {"id": len(self.comments) + 1, "body": body["body"]}
                made |= {"user": {"type": "Bot"}, "html_url": f"{self.url}/c/{made['id']}"}
                self.comments.append(made)
                return 201, made
            case "PATCH", ["issues", "comments", number]:
                comment = self.comments[int(number) - 1]
                comment["body"] = body["body"]
                return 200, comment
            case "GET", ["pulls"]:
                head = query["head"][0].partition(":")[2]
                return 200, [pull for pull in self.pulls if pull["head"] == head]
            case "POST", ["pulls"]:
                pull = {**body, "number": len(self.pulls) + 1}
                pull["html_url"] = f"{self.url}/pull/{pull['number']}"
                self.pulls.append(pull)
                return 201, pull
            case "PATCH", ["pulls", number]:
                self.pulls[int(number) - 1] |= body
                return 200, self.pulls[int(number) - 1]
            case "POST", ["issues", number, "labels"]:
                self.labels[int(number)] = body["labels"]
                return 200, []
            case _:
                return 404, {"message": "Not Found"}


@contextmanager
def github_server() -> Iterator[GitHubServer]:
    """The server, listening."""
    state = GitHubServer()

    class Requests(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else {}
            state.tokens.add(self.headers.get("Authorization", ""))
            url = urlsplit(self.path)
            code, said = state.reply(self.command, url.path, parse_qs(url.query), body)
            data = json.dumps(said).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = _answer  # noqa: N815 - the library's names

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
