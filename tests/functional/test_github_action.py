"""The actions' steps as a runner carries them out: events, trust, outputs, comments, proposals."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from functional_cli import Bench
from github_runner import ACTION, APPLY, Ended, GitHubServer, RunnerJob, github_server, obeyed

SCRIPT = """\
- text: "::error::not mine %0A\\n::set-output name=x::y\\n##[error]nor mine"
  calls: [{name: read, arguments: {file_path: NOTES.md}}]
- text: "Looked <img src=x onerror=alert(1)> @octocat fixes #1"
"""
EDITS = """\
- calls: [{{name: read, arguments: {{file_path: {path}}}}}]
- calls:
  - {{name: edit, arguments: {{file_path: {path}, old_string: "{old}", new_string: "{new}"}}}}
- text: "Done."
"""
TOKEN = "ghs_canary0123456789abcdef"


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=Shop", "-c", "user.email=shop@example.invalid")
    done = subprocess.run(
        ["git", "-C", str(folder), *who, *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


class Project:
    """A repository with a recipe in it, a base commit and a pull request on top."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bench = Bench(folder)
        look = {"name": "look", "model": "scripted/look.script.yaml", "prompt": "Look."}
        checked = {**look, "checks": [{"name": "fine", "run": "false"}], "name": "strict"}
        edit: dict[str, Any] = {"prompt": "Mend.", "permissions": {"edit": "allow"}}
        mend = {**edit, "name": "mend", "model": "scripted/mend.script.yaml"}
        bad = {**edit, "name": "bad", "model": "scripted/bad.script.yaml"}
        bad["patch"] = {"protect": ["nothing"]}
        self.bench.set_up(
            {
                "recipes/look.json": json.dumps(look),
                "recipes/strict.json": json.dumps(checked),
                "recipes/mend.json": json.dumps(mend),
                "recipes/twin.json": json.dumps(
                    {k: v for k, v in mend.items() if v} | {"name": "twin"}
                ),
                "recipes/bad.json": json.dumps(bad),
                "recipes/look.script.yaml": SCRIPT,
                "recipes/mend.script.yaml": EDITS.format(
                    path="NOTES.md", old="in euros", new="in euro cents"
                ),
                "recipes/bad.script.yaml": EDITS.format(
                    path=".github/workflows/ci.yml", old="on: push", new="on: [push]"
                ),
                ".github/workflows/ci.yml": "on: push\n",
            }
        )
        self.root = self.bench.project
        self.base = git(self.root, "rev-parse", "HEAD")

    def change(self) -> str:
        """What a pull request brings: another prompt, and permissions for itself."""
        recipe = self.root / "recipes" / "look.json"
        told = {**json.loads(recipe.read_text()), "permissions": {"bash": "allow"}}
        recipe.write_text(json.dumps({**told, "prompt": "HOSTILE"}))
        git(self.root, "commit", "-q", "-am", "A change")
        return git(self.root, "rev-parse", "HEAD")

    def event(self, head: str) -> dict[str, Any]:
        pull = {"number": 7, "base": {"sha": self.base}, "head": {"sha": head}}
        return {"pull_request": pull, "repository": {"default_branch": "main"}}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


ALL = ("look", "strict", "mend", "twin", "bad")


class Night:
    """One scheduled run of all recipes, for all tests that look at what it left."""

    def __init__(self, folder: Path) -> None:
        self.project = Project(folder)
        self.before = self.status()
        recipes = "\n".join(f"recipes/{name}.json" for name in ALL)
        job = RunnerJob(folder, "schedule", {"schedule": "0 3 * * *"}, self.project.root)
        self.ended = job.run(ACTION, recipes=recipes, jobs="3")
        remote = folder / "remote" / "shop" / "shop.git"
        git(self.project.root, "clone", "-q", "--bare", str(self.project.root), str(remote))

    def status(self) -> str:
        return git(self.project.root, "status", "--porcelain", "--branch")

    def proposed(self, server: GitHubServer, **inputs: str) -> Ended:
        """The job with write permission on what the run left, against a bare remote."""
        environ = {"GITHUB_API_URL": server.url}
        environ["GITHUB_SERVER_URL"] = f"file://{self.project.folder / 'remote'}"
        event = {"repository": {"default_branch": "main"}}
        job = RunnerJob(self.project.folder, "schedule", event, self.project.root, environ)
        return job.run(APPLY, github_token=TOKEN, **inputs)


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Night:
    return Night(tmp_path_factory.mktemp("night"))


@pytest.fixture
def server() -> Iterator[GitHubServer]:
    with github_server() as running:
        yield running


def result(project: Project) -> Any:
    return json.loads((project.root / "harness-run" / "result.json").read_bytes())


def prompts(project: Project) -> str:
    return (project.root / "harness-run" / "events.jsonl").read_text(encoding="utf-8")


def test_in_a_pull_request_the_recipe_comes_from_the_base_and_the_report_is_a_comment(
    project: Project, server: GitHubServer
) -> None:
    event = project.event(project.change())
    environ = {"GITHUB_API_URL": server.url}
    job = RunnerJob(project.folder, "pull_request", event, project.root, environ)
    ended = job.run(ACTION, recipes="recipes/look.json", comment="true", github_token=TOKEN)
    assert (ended.code, ended.outputs["conclusion"]) == (0, "passed"), ended.log
    assert "HOSTILE" not in prompts(project)
    assert ended.steps == ("Run the sessions", "Comment on the pull request", "Keep the run")
    (comment,) = server.comments
    assert comment["body"].startswith("<!-- harness-batch: look -->\n")
    outside = re.sub(r"(?ms)^(`{3,})[^\n]*\n.*?^\1$", "", comment["body"])
    assert "octocat" in comment["body"]
    assert not {"<img", "@octocat", "#1"} & set(outside.split())
    assert server.tokens == {f"Bearer {TOKEN}"}
    assert TOKEN not in ended.log + prompts(project)


def test_outputs_and_summary_of_a_scheduled_run(night: Night) -> None:
    outputs = night.ended.outputs
    assert night.ended.code == 1
    folder = night.project.root / "harness-run"
    assert {key: outputs[key] for key in ("conclusion", "exit-code", "passed", "failed")} == {
        "conclusion": "failed",
        "exit-code": "1",
        "passed": "4",
        "failed": "1",
    }
    assert outputs["run-id"] == result(night.project)["run_id"]
    assert outputs["junit-path"] == str(folder / "junit.xml")
    assert Path(outputs["summary-path"]).read_text() == night.ended.summary
    assert int(outputs["input-tokens"]) > 0
    assert (outputs["patch-path"], outputs["budget-left"]) == (str(folder / "items"), "")
    assert outputs["denials"] == "0"
    assert "Keep the run" in night.ended.steps


def test_nothing_that_an_agent_prints_is_a_workflow_command(night: Night) -> None:
    commands = obeyed(night.ended.log)
    assert len(commands) == 1
    assert commands[0].startswith("::error title=strict,file=recipes/strict.json")


def test_a_dispatched_run_takes_all_inputs(project: Project) -> None:
    job = RunnerJob(project.folder, "workflow_dispatch", {"inputs": {}}, project.root)
    ended = job.run(
        ACTION,
        recipes="recipes/look.json\nrecipes/strict.json\nfix-failing-test",
        max_cost="1.50",
        max_time="5m",
        shard="1/2",
        only="look",
        out="some/where",
        args="--no-repo-config --deny 'bash:rm *'",
        summary="false",
        annotations="false",
        upload_artifact="false",
    )
    assert ended.code == 0, ended.log
    told = json.loads((project.root / "some/where/result.json").read_bytes())
    assert [session["item_key"] for session in told["sessions"]] == ["look"]
    assert told["shard"] == {"index": 1, "total": 2}
    assert ended.outputs["budget-left"] == "0.75"
    assert (ended.summary, ended.steps) == ("", ("Run the sessions",))
    assert "bash:rm *" in told["argv"]


def test_a_fault_before_the_run_is_told_and_the_outputs_say_invalid(project: Project) -> None:
    job = RunnerJob(project.folder, "schedule", {}, project.root)
    ended = job.run(ACTION, recipes="recipes/nowhere.json", comment="true")
    assert (ended.code, ended.outputs["conclusion"], ended.outputs["exit-code"]) == (
        2,
        "invalid",
        "2",
    )
    assert "no such file" in ended.log
    assert ended.steps == ("Run the sessions",)


def test_a_clone_without_the_base_is_refused_and_says_what_to_do(project: Project) -> None:
    event = project.event(project.change())
    event["pull_request"]["base"]["sha"] = "0" * 40
    job = RunnerJob(project.folder, "pull_request", event, project.root)
    ended = job.run(ACTION, recipes="recipes/look.json")
    assert ended.code == 2
    assert "fetch-depth: 0" in ended.log


def test_pull_request_target_with_the_head_checked_out_needs_a_word(project: Project) -> None:
    event = project.event(project.change())
    job = RunnerJob(project.folder, "pull_request_target", event, project.root)
    ended = job.run(ACTION, recipes="recipes/look.json")
    assert (ended.code, ended.outputs["conclusion"]) == (2, "invalid")
    assert "pull_request_target runs with" in ended.log


def test_a_run_that_a_pull_request_brings_is_not_taken_for_the_one_of_the_job(
    project: Project,
) -> None:
    brought = project.root / "harness-run"
    brought.mkdir()
    (brought / "result.json").write_text('{"conclusion": "passed", "run_id": "run_EVIL"}')
    git(project.root, "add", "-f", "harness-run")
    event = project.event(project.change())
    job = RunnerJob(project.folder, "pull_request", event, project.root)
    ended = job.run(ACTION, recipes="recipes/look.json", comment="true")
    assert (ended.code, ended.outputs["conclusion"], ended.outputs["run-id"]) == (2, "invalid", "")
    assert "the pull request has harness-run" in ended.log
    assert ended.steps == ("Run the sessions",)


def branches(project: Project) -> dict[str, str]:
    remote = project.folder / "remote" / "shop" / "shop.git"
    listed = git(remote, "for-each-ref", "--format=%(refname:lstrip=2) %(objectname)")
    return dict(line.split(" ") for line in listed.splitlines())


def test_a_patch_becomes_a_pull_request_and_the_next_night_renews_it(
    night: Night, server: GitHubServer
) -> None:
    project = night.project
    ended = night.proposed(server, labels="automated\nnight", draft="true")
    assert ended.code == 1, ended.log
    (pull,) = server.pulls
    assert (pull["head"], pull["base"], pull["draft"]) == ("harness-batch/mend", "main", True)
    assert server.labels == {1: ["automated", "night"]}
    remote = project.folder / "remote" / "shop" / "shop.git"
    assert set(branches(project)) == {"main", "harness-batch/mend"}
    commit = branches(project)["harness-batch/mend"]
    assert git(remote, "show", f"{commit}:NOTES.md") == "Prices are in euro cents."
    assert git(remote, "rev-parse", f"{commit}^") == project.base
    assert TOKEN not in ended.log
    assert "duplicate twin: the same change as mend" in ended.log
    assert "refused bad: .github/workflows/ci.yml: is protected" in ended.log
    again = night.proposed(server)
    assert len(server.pulls) == 1
    assert "renewed mend" in again.log
    assert night.status().startswith(night.before)


def test_of_a_run_over_several_repositories_each_gets_its_own_patches(
    night: Night, server: GitHubServer
) -> None:
    ended = night.proposed(server, repository="shop/shop", only="tw*")
    assert [pull["head"] for pull in server.pulls] == ["harness-batch/twin"]
    assert (ended.code, server.pulls[0]["base"]) == (0, "main"), ended.log
    none = night.proposed(server, only="*@elsewhere")
    assert none.code == 2
    assert "--only *@elsewhere: matches no item" in none.log


@pytest.mark.parametrize("action", [ACTION, APPLY], ids=["action", "apply"])
def test_no_script_of_an_action_has_an_expression_in_it(action: Path) -> None:
    metadata = yaml.safe_load(action.read_text(encoding="utf-8"))
    for step in metadata["runs"]["steps"]:
        assert "${{" not in step.get("run", ""), step["name"]
        uses = step.get("uses")
        assert uses is None or len(uses.partition("@")[2]) == 40, uses


def test_the_key_of_the_comment_reaches_no_other_step() -> None:
    metadata = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    seen = [s["name"] for s in metadata["runs"]["steps"] if "github-token" in json.dumps(s)]
    assert seen == ["Comment on the pull request"]
