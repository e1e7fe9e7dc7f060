"""`auth` and `doctor` as a process: keys in and out, none on a screen, no terminal asked."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from harness_batch.cli.main import COMMANDS, entry

KEY = "sk-canary-5f1e77d0c2b4"


def auth(home: Path, *words: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "harness_batch", *words],
        cwd=home, env=environ, input=given or "", capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    assert KEY not in done.stdout + done.stderr
    return done


def stored(home: Path) -> dict[str, dict[str, str]]:
    file = home / ".config/harness-batch/auth.json"
    found: dict[str, dict[str, str]] = json.loads(file.read_text())
    return found


def test_a_key_goes_in_by_pipe_or_file_is_shown_as_there_and_goes_out_again(
    tmp_path: Path,
) -> None:
    done = auth(tmp_path, "auth", "login", "anthropic", "--key-file", "-", given=f"{KEY}\n")
    assert done.returncode == 0, done.stderr
    (tmp_path / "key.txt").write_text(f"\n{KEY}2\n")
    assert auth(tmp_path, "auth", "login", "openai", "--key-file", "key.txt").returncode == 0
    assert stored(tmp_path) == {"anthropic": {"key": KEY}, "openai": {"key": f"{KEY}2"}}
    found = json.loads(auth(tmp_path, "auth", "status", "--json").stdout)
    file = str(tmp_path / ".config/harness-batch/auth.json")
    assert found["anthropic"] == {"type": "anthropic", "ready": True, "source": file}
    assert found["copilot"] == {"type": "copilot", "ready": False, "source": None}
    assert f"key from {file}" in auth(tmp_path, "doctor").stdout
    assert auth(tmp_path, "auth", "status", "anthropic").returncode == 0
    assert auth(tmp_path, "auth", "logout", "anthropic").returncode == 0
    lacking = auth(tmp_path, "auth", "status", "anthropic")
    assert lacking.returncode == 1
    assert "set ANTHROPIC_API_KEY, or run `harness-batch auth login anthropic`" in lacking.stdout
    assert "holds no key" in auth(tmp_path, "auth", "logout", "anthropic").stdout
    assert set(stored(tmp_path)) == {"openai"}


@pytest.mark.parametrize(
    ("words", "given", "told"),
    [
        (["anthropic"], "", "where is the key?"),
        (["antropic", "--key-file", "-"], KEY, "did you mean `anthropic`?"),
        (["scripted", "--key-file", "-"], KEY, "needs no key"),
        (["anthropic", "--key-file", "-"], "", "stdin holds no key: it is empty"),
        (["anthropic", "--key-file", "-"], f"{KEY}\n{KEY}", "one key on one line"),
        (["anthropic", "--key-file", "-"], f"{KEY}é", "a strange sign"),
        (["anthropic", "--key-file", "-"], "x" * 70_000, "that is no key"),
        (["anthropic", "--key-file", "none.txt"], "", "none.txt: No such file"),
        (["anthropic", "--config", "none.json", "--key-file", "-"], KEY, "none.json"),
    ],
)
def test_what_is_no_login_is_told_in_one_message(
    tmp_path: Path, words: list[str], given: str, told: str
) -> None:
    done = auth(tmp_path, "auth", "login", *words, given=given)
    assert done.returncode == 2
    assert told in done.stderr
    assert not (tmp_path / ".config").exists()


def test_a_terminal_is_never_asked_for_a_key(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "harness_batch", "auth", "login", "openai", "--key-file", "-"],
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
            stdin=theirs, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 2
    assert "stdin is a terminal; pipe the key in" in done.stderr


def _names() -> list[tuple[str, ...]]:
    import click

    found: list[tuple[str, ...]] = []
    for name in COMMANDS:
        command = entry.get_command(click.Context(entry), name)
        below = command.commands if isinstance(command, click.Group) else {}
        found += [(name, word) for word in below] or [(name,)]
    return found


@pytest.mark.parametrize("words", _names(), ids=" ".join)
def test_every_command_takes_a_configuration_file(words: tuple[str, ...]) -> None:
    import click

    found: click.Command | None = entry
    for word in words:
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), word)
    assert found is not None
    assert any("--config" in parameter.opts for parameter in found.params)


@pytest.mark.parametrize("words", [["runs"], ["show", "x"], ["auth", "logout", "mine"]])
def test_a_configuration_file_that_is_none_is_refused_by_every_command(
    tmp_path: Path, words: list[str]
) -> None:
    (tmp_path / "broken.json").write_text('{"providers": {}}')
    done = auth(tmp_path, *words, "--config", "broken.json")
    assert done.returncode == 2
    assert "did you mean `provider`?" in done.stderr
