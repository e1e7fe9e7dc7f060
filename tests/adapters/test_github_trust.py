"""What a job of GitHub Actions may trust, and what its API may answer."""

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from attrs import evolve

from github_runner import github_server
from harness_batch.app.github_job import environment_of, job_of, say, words_of
from harness_batch.app.options import ConfigSources
from harness_batch.app.reviewed import configuration_file
from harness_batch.errors import CodeHostError, UsageError
from harness_batch.github.api import MOST_BYTES, Api
from harness_batch.github.comments import stick
from harness_batch.github.trigger import Trigger, refusal, trigger_of
from workspace_repos import committed, git

BASE, HEAD, OTHER = "a" * 40, "b" * 40, "c" * 40


@pytest.mark.parametrize(
    ("event", "checked_out", "refused"),
    [
        ("pull_request", HEAD, False),
        ("pull_request_target", BASE, False),
        ("pull_request_target", OTHER, False),  # the base branch has moved on: GITHUB_SHA
        ("pull_request_target", HEAD, True),
        ("pull_request_target", None, True),
        ("workflow_run", OTHER, False),
        ("workflow_run", HEAD, True),
        ("issue_comment", HEAD, True),
        ("issue_comment", None, True),
        ("schedule", HEAD, False),
    ],
)
def test_jobs_with_secrets_run_on_the_repositorys_own_commit(
    event: str, checked_out: str | None, refused: bool
) -> None:
    pull = {"number": 7, "base": {"sha": BASE}, "head": {"sha": HEAD}}
    environ = {"GITHUB_EVENT_NAME": event, "GITHUB_SHA": OTHER}
    trigger = trigger_of(environ, {"pull_request": pull})
    assert (refusal(trigger, checked_out, target_allowed=False) is not None) is refused
    assert refusal(trigger, checked_out, target_allowed=True) is None


@pytest.mark.parametrize("event", [None, [], "x", {"pull_request": []}, {"pull_request": {}}])
def test_an_event_of_any_shape_gives_nothing_but_what_it_has(event: object) -> None:
    trigger = trigger_of({"GITHUB_EVENT_NAME": "pull_request"}, event)
    assert trigger == Trigger(event="pull_request")


@pytest.mark.parametrize("number", [True, -1, 0, "7", 7.0, [7]])
def test_a_number_that_is_none_is_no_pull_request(number: object) -> None:
    assert trigger_of({}, {"pull_request": {"number": number}}).number is None


def test_a_review_is_held_to_the_base_as_its_pull_request_is() -> None:
    event = {"pull_request": {"base": {"sha": BASE, "ref": "main"}}}
    trigger = trigger_of({"GITHUB_EVENT_NAME": "pull_request_review"}, event)
    assert trigger.reviews
    assert environment_of(trigger) == {"GITHUB_BASE_REF": "main"}
    assert environment_of(evolve(trigger, event="schedule")) == {}


def changed(folder: Path) -> tuple[Path, Trigger]:
    """A checkout of a pull request, which brings configuration and a folder, and its event."""
    root = committed(folder / "shop", {"ci/h.jsonc": "{}", "r[1]/r.json": "{}", "r1/r.json": "{}"})
    base = git(root, "rev-parse", "HEAD")
    git(root, "update-ref", "refs/remotes/origin/main", base)
    committed(root, {"ci/h.jsonc": '{"evil": 1}', "ci/new.jsonc": "{}", "run/result.json": "{}"})
    return root, Trigger(event="pull_request", base_sha=base)


def words(root: Path, trigger: Trigger, aside: Path, **inputs: str) -> list[str]:
    job = job_of({"ACTION_RECIPES": "r[1]/r.json", **inputs}, root)
    return words_of(job, trigger, root, aside)


def test_a_folder_of_recipes_is_a_name_and_no_pattern(tmp_path: Path) -> None:
    root, trigger = changed(tmp_path)
    told = words(root, trigger, tmp_path / "aside")
    assert told[:2] == ["run", str(tmp_path / "aside" / "r[1]" / "r.json")]
    assert sorted(path.name for path in (tmp_path / "aside").iterdir()) == ["r[1]"]


@pytest.mark.parametrize("out", ["run", "run/below", ".", "x/../run", "link", "link/below"])
def test_a_run_is_not_put_where_the_pull_request_was_before(tmp_path: Path, out: str) -> None:
    root, trigger = changed(tmp_path)
    (root / "link").symlink_to(tmp_path)
    if out == "run/below":
        committed(root, {"run/below/x": ""})
    with pytest.raises(UsageError, match="the input `out`"):
        words(root, trigger, tmp_path / "aside", ACTION_OUT=out)


def test_a_checkout_below_the_workspace_is_refused(tmp_path: Path) -> None:
    root, trigger = changed(tmp_path)
    with pytest.raises(UsageError, match="without `path`"):
        words(root.parent, trigger, tmp_path / "aside", ACTION_RECIPES="shop/r1/r.json")


@pytest.mark.parametrize("args", ["--out x", "--out=x"])
def test_the_runs_folder_is_said_in_one_place(tmp_path: Path, args: str) -> None:
    with pytest.raises(UsageError, match="--out"):
        job_of({"ACTION_RECIPES": "r.json", "ACTION_ARGS": args}, tmp_path)


def test_what_lies_in_the_folder_of_a_run_that_did_not_begin_is_no_output(tmp_path: Path) -> None:
    (tmp_path / "harness-run").mkdir()
    (tmp_path / "harness-run" / "result.json").write_text('{"conclusion": "passed"}')
    output = tmp_path / "output"
    job = job_of({"ACTION_RECIPES": "r.json", "GITHUB_OUTPUT": str(output)}, tmp_path)
    say(job, 2)
    assert "passed" not in output.read_text()
    assert "invalid" in output.read_text()


def test_a_configuration_of_the_pull_request_is_taken_from_its_base(tmp_path: Path) -> None:
    root, _ = changed(tmp_path)
    (tmp_path / "mine.jsonc").write_text("{}")
    (tmp_path / "link.jsonc").symlink_to(root / "ci" / "h.jsonc")

    def taken(named: str, *, trust_repo: bool = False) -> Path | None:
        environ = {"GITHUB_BASE_REF": "main"}
        sources = ConfigSources(
            cwd=root,
            environ=environ,
            explicit=root / named,
            trust_repo=trust_repo,
            repo_config=True,
        )
        return configuration_file(sources)

    found = taken("ci/h.jsonc")
    assert found is not None
    assert found.read_text() == "{}"
    assert taken("../mine.jsonc") == root / "../mine.jsonc"
    assert taken("ci/h.jsonc", trust_repo=True) == root / "ci/h.jsonc"
    for named, words in (("ci/new.jsonc", "no such file"), ("../link.jsonc", "a link into")):
        with pytest.raises(UsageError, match=words):
            taken(named)


@contextmanager
def answering(status: int, body: bytes, **headers: str) -> Iterator[tuple[Api, list[str]]]:
    """An API that says one thing, and the paths that it was asked for."""
    asked: list[str] = []

    class Requests(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            try:
                self.wfile.write(body)
            except ConnectionError:
                return

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Nothing on stderr."""

    server = HTTPServer(("127.0.0.1", 0), Requests)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        environ = {"GITHUB_TOKEN": "t", "GITHUB_REPOSITORY": "a/b", "GITHUB_API_URL": url}
        yield Api.of(environ), asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


ANSWERS: dict[str, tuple[int, bytes, dict[str, str], str]] = {
    "no JSON": (200, b"<html>", {}, "no JSON"),
    "deep JSON": (200, b"[" * 200_000, {}, "no JSON"),
    "a bomb": (200, gzip.compress(b" " * (MOST_BYTES + 1)), {"Content_Encoding": "gzip"}, "more"),
    "a redirect": (302, b"{}", {"Location": "/elsewhere"}, "302"),
    "no words": (500, b"[]", {}, "500"),
}


@pytest.mark.parametrize(("status", "body", "headers", "told"), ANSWERS.values(), ids=ANSWERS)
def test_an_odd_answer_of_the_api_is_told_in_a_line(
    status: int, body: bytes, headers: dict[str, str], told: str
) -> None:
    with answering(status, body, **headers) as (api, asked):
        with pytest.raises(CodeHostError, match=told) as caught:
            api.get("/pulls")
        assert "\n" not in str(caught.value)
        assert asked == ["/repos/a/b/pulls"]


def test_each_recipe_has_its_own_comment_whatever_it_is_called() -> None:
    names = ["fix-lint", "fix_lint", "a --> b", "a --_ b", "x" * 300, "x" * 299, "\ud800", "ä"]
    with github_server() as server:
        environ = {"GITHUB_TOKEN": "t", "GITHUB_REPOSITORY": "shop/shop"}
        api = Api.of({**environ, "GITHUB_API_URL": server.url})
        for text in ("first", "second"):
            for name in names:
                stick(api, 7, name, text)
        bodies: list[Any] = [comment["body"] for comment in server.comments]
    assert len(bodies) == len(names)
    assert all(body.splitlines()[0].count("-->") == 1 for body in bodies)
    assert all(body.splitlines()[1:] == ["second"] for body in bodies)
    assert json.dumps(bodies)
