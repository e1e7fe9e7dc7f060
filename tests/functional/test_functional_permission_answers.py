"""`permissions` on a real run: what decided, the least rules, other rules, one call explained."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

RECIPE = """name: strict
model: scripted/script.yaml
prompt: Do it.
permissions:
  bash:
    "*": allow
    "rm *": deny
  edit: {"invoice/*": allow}
"""
SCRIPT = """
- calls:
  - {name: bash, arguments: {command: "python3 --version && ls invoice > listing.txt"}}
  - {name: bash, arguments: {command: "ls invoice"}}
  - {name: bash, arguments: {command: "rm -r invoice"}}
- {text: Done.}
"""
NARROW = (
    "name: strict\nmodel: scripted/script.yaml\nprompt: x\npermissions: {bash: {'ls *': deny}}\n"
)


def harness_batch(cwd: Path, *words: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "harness_batch", *words],
        cwd=cwd, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout if code < 2 else done.stderr


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("permissions")
    harness_batch(home, "init", "--sample", "sample")
    sample = home / "sample"
    (sample / "strict.yaml").write_text(RECIPE)
    (sample / "narrow.yaml").write_text(NARROW)
    (sample / "script.yaml").write_text(SCRIPT)
    harness_batch(sample, "run", "strict.yaml", "--progress", "none")
    return sample


def as_json(cwd: Path, *words: str, code: int = 0) -> Any:
    return json.loads(harness_batch(cwd, *words, code=code))


def test_the_rules_that_decided_are_told_with_their_place(ran: Path) -> None:
    text = harness_batch(ran, "permissions", "last")
    denied = next(line for line in text.splitlines() if "bash: rm *: deny" in line)
    assert denied.startswith("deny ")
    assert "recipe:strict.yaml:7" in denied
    rules = as_json(ran, "permissions", "last", "--format", "json")["rules"]
    (wide,) = (rule for rule in rules if rule["rule"] == "bash: *: allow")
    assert {"python3 --version", "ls invoice"} == {one["pattern"] for one in wide["patterns"]}


def test_a_run_that_only_the_history_has_answers_too(ran: Path, tmp_path: Path) -> None:
    run_id = next((ran / ".harness/runs").iterdir()).name
    words = ("permissions", run_id, "--db", str(ran / ".harness/history.duckdb"))
    assert harness_batch(tmp_path, *words) == harness_batch(ran, "permissions", run_id)


def test_the_suggested_lines_are_a_recipes(ran: Path) -> None:
    text = harness_batch(ran, "permissions", "last", "--suggest")
    assert yaml.safe_load(text) == {"permissions": {"bash": {"ls invoice": "allow"}}}
    assert text.startswith("# strict\n")


def test_other_rules_say_what_they_would_change(ran: Path) -> None:
    text = harness_batch(ran, "permissions", "last", "--try", "narrow.yaml")
    assert "would be denied   bash ls invoice" in text
    assert "now: narrow.yaml:4: bash: ls *: deny" in text
    changed = as_json(ran, "permissions", "last", "--try", "narrow.yaml", "--format", "json")
    assert changed["changed"][0]["source"] == "recipe:narrow.yaml:4"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("bash", "make test"), 0, ("strict.yaml:6: bash: *: allow",)),
        (("bash", "rm x && ls"), 1, ("deny   bash rm x", "strict.yaml:7: bash: rm *: deny")),
        (("bash", "git push"), 1, ("no rule can allow it", "strict.yaml:6: bash: *: allow")),
        (("edit", "src/x.py"), 1, ("no rule matches",)),
        (("write", "invoice/x.py"), 0, ("strict.yaml:8: edit: invoice/*: allow",)),
        (("read", '{"file_path": ".env"}'), 1, ("default: read: *.env: deny",)),
        (("grep", "src"), 0, ("default: grep: *: allow",)),
        (("webfetch", "https://example.org"), 1, ("webfetch https://example.org/",)),
        (("task", "explore"), 1, ("task explore",)),
        (("files_read", "x"), 1, ("mcp files_read",)),
        (("todo", ""), 0, ("default: todo: *: allow",)),
    ],
    ids=str,
)
def test_a_call_is_explained_by_rule_and_line(
    ran: Path, words: tuple[str, str], code: int, told: tuple[str, ...]
) -> None:
    text = harness_batch(ran, "permissions", "explain", "strict.yaml", "--tool", *words, code=code)
    assert text.startswith("allowed\n" if code == 0 else "denied\n")
    for words_told in told:
        assert words_told in text


def test_an_input_that_is_nested_too_deeply_is_a_plain_text(ran: Path) -> None:
    words = ("explain", "strict.yaml", "--tool", "todo", '{"a":' + "[" * 3000)
    assert harness_batch(ran, "permissions", *words).startswith("allowed\n")


def test_a_rule_of_the_configuration_is_told_with_its_line(ran: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.jsonc"
    config.write_text('{\n  // mine\n  "permissions": {\n    "webfetch": {"*": "allow"}}\n}\n')
    words = ("--tool", "webfetch", "https://a.example/", "--config", str(config), "--json")
    told = as_json(ran, "permissions", "explain", "strict.yaml", *words)
    assert told["items"][0]["decisions"][0]["place"] == f"{config}:4"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("explain", "strict.yaml", "--tool", "bahs", "ls"), "did you mean `bash`?"),
        (("explain", "strict.yaml", "--tool", "read", '{"path": 1}'), "--tool read"),
        (("run_none",), "there is no run"),
        (("last", "--suggest", "--try", "narrow.yaml"), "choose one"),
    ],
    ids=str,
)
def test_a_mistake_is_told(ran: Path, words: tuple[str, ...], told: str) -> None:
    assert told in harness_batch(ran, "permissions", *words, code=2)
