"""The record that a recipe becomes: everything declared is there, typed, and nothing else is."""

from decimal import Decimal
from pathlib import Path

import pytest

from harness_batch.limits import Limits
from harness_batch.recipe.door import open_recipe
from harness_batch.recipe.durations import seconds
from harness_batch.recipe.record import (
    Check,
    Expectations,
    Extension,
    PatchRules,
    Recipe,
    RetryRule,
    SandboxWish,
    WorkspaceWish,
)
from harness_batch.rules import Rule

WHOLE = """\
version: 1.0.0
name: fix-lint
title: Fix lint
description: Mends what the linter finds.
author: {contact: me, x-team: core}
instructions: Mind the style.
prompt: Fix it.
model: scripted/replies.yaml
small_model: anthropic/claude-haiku-5
agent: plan
settings: {temperature: 0}
permissions:
  edit: {"src/**": allow, "src/vendor/**": deny}
  bash: {"ruff *": allow, "pytest *": allow}
  "*": ask
on_denial: 3
sandbox: {network: [pypi.example], write: [/var/cache], need: [net-none], external: false}
env: [CI, "RUFF_*"]
workspace:
  {repo: ., ref: main, path: src, mode: in-place, setup: ["pip install -e ."], submodules: true}
limits:
  steps: 50
  tool_calls: 0
  tokens: 2000000
  cost_usd: 2.10
  seconds: 1h30m
  working_seconds: 0.5
  output_tokens: 8000.0
context: ["docs/style.md"]
checks:
  - {name: tests, run: "pytest -q", timeout: 10m, x-why: slow}
  - {name: lint, run: ruff check}
expect:
  {patch: required, answer: nonempty, max_files: 0, max_cost_usd: 0.1, tools_used: [bash],
   tools_unused: [webfetch], touches: ["src/**"]}
patch: {allow: ["src/**"], protect: [], max_files: 9, max_bytes: 10, message: "m"}
response: {json_schema: {type: object, x-own: 1}}
extensions: [{type: builtin, name: developer}, {type: platform, name: todo}]
retry:
  max_retries: 2
  checks: [{type: shell, command: make check, x-why: slow}]
  on_failure: make clean
  timeout_seconds: 5
  on_failure_timeout_seconds: 7.5
  feedback: true
  reset: true
protocol: native
sub_recipes: []
x-notes: anything
"""


def test_a_whole_recipe_becomes_its_record(tmp_path: Path) -> None:
    file = tmp_path / "r.yaml"
    file.write_text(WHOLE)
    (tmp_path / "replies.yaml").write_text("[]")
    where = f"recipe:{file}"
    assert open_recipe(file).rendered({}) == Recipe(
        file=file,
        name="fix-lint",
        title="Fix lint",
        description="Mends what the linter finds.",
        instructions="Mind the style.",
        prompt="Fix it.",
        models=(f"scripted/{tmp_path}/replies.yaml",),
        small_model="anthropic/claude-haiku-5",
        agent="plan",
        temperature=0,
        permissions=(
            Rule("edit", "src/**", "allow", f"{where}:13"),
            Rule("edit", "src/vendor/**", "deny", f"{where}:13"),
            Rule("bash", "ruff *", "allow", f"{where}:14"),
            Rule("bash", "pytest *", "allow", f"{where}:14"),
            Rule("*", "*", "ask", f"{where}:15"),
        ),
        on_denial=3,
        sandbox=SandboxWish(
            network=("pypi.example",),
            write=("/var/cache",),
            need=("net-none",),
            external=False,
        ),
        env=("CI", "RUFF_*"),
        workspace=WorkspaceWish(
            repo=".",
            ref="main",
            path="src",
            mode="in-place",
            setup=("pip install -e .",),
            submodules=True,
        ),
        limits=Limits(
            steps=50,
            tool_calls=0,
            tokens=2_000_000,
            cost_usd=Decimal("2.1"),
            seconds=5400.0,
            working_seconds=0.5,
            output_tokens=8000,
        ),
        context=("docs/style.md",),
        checks=(
            Check(name="tests", run="pytest -q", timeout=600.0),
            Check(name="lint", run="ruff check"),
        ),
        expect=Expectations(
            patch="required",
            answer="nonempty",
            max_files=0,
            max_cost_usd=Decimal("0.1"),
            tools_used=("bash",),
            tools_unused=("webfetch",),
            touches=("src/**",),
        ),
        patch=PatchRules(allow=("src/**",), protect=(), max_files=9, max_bytes=10, message="m"),
        response_schema={"type": "object", "x-own": 1},
        extensions=(
            Extension(type="builtin", name="developer"),
            Extension(type="builtin", name="todo"),
        ),
        retry=RetryRule(
            max_retries=2,
            checks=("make check",),
            on_failure="make clean",
            timeout_seconds=5.0,
            on_failure_timeout_seconds=7.5,
            feedback=True,
            reset=True,
        ),
    )


def test_money_has_no_float_noise_and_whole_numbers_are_ints(tmp_path: Path) -> None:
    file = tmp_path / "r.yaml"
    file.write_text("prompt: a\nlimits: {cost_usd: 0.1, output_tokens: 8000.0}\n")
    limits = open_recipe(file).rendered({}).limits
    assert (limits.cost_usd, repr(limits.output_tokens)) == (Decimal("0.1"), "8000")


def test_the_least_recipe_has_the_records_own_defaults(tmp_path: Path) -> None:
    file = tmp_path / "my task.yaml"
    file.write_text("prompt: a\n")
    assert open_recipe(file).rendered({}) == Recipe(file=file, name="my task", prompt="a")


def test_values_have_their_places_and_missing_ones_their_ancestors(tmp_path: Path) -> None:
    file = tmp_path / "r.yaml"
    file.write_text(WHOLE)
    (tmp_path / "replies.yaml").write_text("[]")
    source = open_recipe(file)
    assert source.place("checks", 1, "run") == (32, 23)
    assert source.place("checks", 1, "timeout") == (32, 5)
    assert source.place("model", 0) == (8, 8)
    assert source.place("matrix") == (1, 1)


@pytest.mark.parametrize(
    ("text", "value"),
    [("90s", 90), ("10m", 600), ("1h30m", 5400), ("7d", 604_800), ("1.5h", 5400), ("250ms", 0.25)],
)
def test_durations_are_read_as_people_write_them(text: str, value: float) -> None:
    assert seconds(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "10", "s", "-5s", "1 h", "5y", "0s", "1e3s", "9" * 30 + "s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|no time"):
        seconds(text)
