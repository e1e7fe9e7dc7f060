"""Defaults of `run` options out of the configuration: which files are read, and that it is once."""

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from harness_batch.cli.defaults import WithConfigDefaults, config_of
from harness_batch.cli.options import input_options, inputs_of, rules_of


@click.command(cls=WithConfigDefaults)
@input_options
@click.pass_context
def probe(ctx: click.Context, /, **values: Any) -> None:  # click's own
    """Tell what a command would be called with."""
    inputs = inputs_of(values, rules_of(ctx, values))
    config = config_of(ctx, inputs)
    _, early = ctx.meta["config"]
    facts = {
        "only": values["only"],
        "trust_repo": values["trust_repo"],
        "grants": config.grants,
        "read_once": config is early,
    }
    click.echo(json.dumps(facts))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / ".config/harness-batch").mkdir(parents=True)
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    (repository / "harness.jsonc").write_text('{"grants": {"x": ["a/b"]}, "run": {"only": "r*"}}')
    monkeypatch.chdir(repository)
    return home


def told(home: Path, *words: str, **environ: str) -> Any:  # JSON
    env = {"HOME": str(home), "XDG_CONFIG_HOME": None, **environ}
    done = CliRunner().invoke(probe, ["recipe", *words], env=env, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_what_a_repository_says_of_runs_is_left_out_until_it_is_trusted(home: Path) -> None:
    assert told(home) == {"only": [], "trust_repo": False, "grants": None, "read_once": True}
    trusted = told(home, "--trust-repo")
    assert (trusted["only"], trusted["grants"]) == (["r*"], {"x": ["a/b"]})
    assert trusted["read_once"]


def test_the_environment_says_what_is_read_as_the_command_line_does(home: Path) -> None:
    assert told(home, HARNESS_BATCH_TRUST_REPO="1") == told(home, "--trust-repo")


def test_a_file_of_the_command_line_wins_and_other_words_are_no_matter(home: Path) -> None:
    file = home / "more.jsonc"
    file.write_text('{"run": {"only": ["f*"]}}')
    told_so = told(home, "-p", "a=b", f"--config={file}", "-mscripted/x", "--ref", "main")
    assert told_so["only"] == ["f*"]
    assert told(home, HARNESS_BATCH_CONFIG=str(file))["only"] == ["f*"]


def test_a_default_that_trusts_the_repository_has_the_configuration_read_again(home: Path) -> None:
    (home / ".config/harness-batch/config.jsonc").write_text('{"run": {"trust_repo": true}}')
    again = told(home)
    assert again == {
        "only": [],
        "trust_repo": True,
        "grants": {"x": ["a/b"]},
        "read_once": False,
    }
