"""`auth` and `doctor` as a process: keys in and out, none on a screen, no terminal asked."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from harness_batch.cli.main import COMMANDS, entry
from wire.github import GRANTED, LOGIN, PENDING, GitHub

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


async def logged_in(home: Path, github: GitHub) -> subprocess.CompletedProcess[bytes]:
    async with github.served():
        (home / "c.json").write_text(json.dumps({"provider": {"copilot": github.settings()}}))
        words = ("auth", "login", "copilot", "--config", "c.json")
        return await trio.run_process(
            [sys.executable, "-m", "harness_batch", *words],
            cwd=home, env={"PATH": os.environ["PATH"], "HOME": str(home)},
            capture_stdout=True, capture_stderr=True, check=False,
        )  # fmt: skip


async def test_a_login_by_code_shows_the_code_on_stderr_and_stores_the_token(
    tmp_path: Path,
) -> None:
    github = GitHub((), polls=[PENDING, {"error": "slow_down", "interval": 0.02}, GRANTED])
    done = await logged_in(tmp_path, github)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == 0, err
    assert "WDJB-MJHT" in err
    assert "WDJB-MJHT" not in out
    assert LOGIN not in out + err
    assert github.exchanges[0] not in out + err
    assert stored(tmp_path) == {"copilot": {"key": LOGIN}}


async def test_a_denied_login_stores_nothing_and_is_told(tmp_path: Path) -> None:
    github = GitHub((), polls=[{"error": "access_denied"}])
    done = await logged_in(tmp_path, github)
    assert done.returncode == 3
    assert done.stderr.decode().endswith("harness-batch: copilot: the login was denied at GitHub\n")
    assert not (tmp_path / ".config").exists()


@pytest.mark.parametrize("command", ["validate", "plan", "run"])
def test_what_cannot_run_is_told_before_anything_does(tmp_path: Path, command: str) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    commit = "git -c user.name=a -c user.email=b@c.invalid commit -q --allow-empty -m x"
    subprocess.run(commit.split(), cwd=tmp_path, check=True)
    (tmp_path / "r.yaml").write_text("prompt: Do it.\nmodel: anthropic/claude-sonnet-5\n")
    assert auth(tmp_path, "auth", "login", "openai", "--key-file", "-", given=KEY).returncode == 0
    if command != "run":
        unsigned = auth(tmp_path, command, "r.yaml")
        assert unsigned.returncode == 0
        assert "warning: model anthropic/claude-sonnet-5: anthropic: no API key;" in unsigned.stderr
    (tmp_path / "script.yaml").write_text("- tex: hi\n")
    broken = auth(tmp_path, command, "r.yaml", "-m", f"scripted/{tmp_path}/script.yaml")
    assert (broken.returncode, "unknown key 'tex'" in broken.stderr) == (2, True)
    (tmp_path / ".config/harness-batch/auth.json").chmod(0o640)
    opened = auth(tmp_path, command, "r.yaml")
    assert (opened.returncode, "chmod 600" in opened.stderr) == (2, True)
    assert not list(tmp_path.glob(".harness/runs/*"))


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
