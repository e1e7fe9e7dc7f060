"""What tools see of the environment."""

from pathlib import Path

from harness_batch.sandbox.environment import tool_environment

RUNNER = {
    "PATH": "/venv/bin:/usr/bin::.:relative/bin:/bin",
    "HOME": "/home/ann",
    "LANG": "de_DE.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TERM": "xterm",
    "TMPDIR": "/tmp/ann",
    "CI": "true",
    "RUFF_CACHE_DIR": "/x",
    "ANTHROPIC_API_KEY": "k",
    "OPENAI_API_KEY": "k",
    "GITHUB_TOKEN": "t",
    "GITHUB_ENV": "/f",
    "GITHUB_STEP_SUMMARY": "/f",
    "ACTIONS_RUNTIME_TOKEN": "t",
    "GIT_DIR": "/elsewhere",
    "NPM_TOKEN": "t",
    "db_password": "p",
    "MY_SECRETS_FILE": "s",
    "AWS_SECRET_ACCESS_KEY": "s",
    "SSH_AUTH_SOCK": "/s",
    "LD_PRELOAD": "evil.so",
}


def seen(*allow: str) -> dict[str, str]:
    return tool_environment(RUNNER, allow, Path("/private/home"), Path("/private/tmp"))


def test_without_a_declaration_only_the_basics_are_there() -> None:
    environment = seen()
    plain = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
    assert plain == {
        "PATH": "/venv/bin:/usr/bin:/bin",
        "HOME": "/private/home",
        "TMPDIR": "/private/tmp",
        "LANG": "de_DE.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm",
    }
    assert environment["GIT_TERMINAL_PROMPT"] == "0"
    assert environment["GIT_EDITOR"] == "true"
    assert environment["GIT_AUTHOR_NAME"] == environment["GIT_COMMITTER_NAME"] == "harness-batch"
    assert "GIT_DIR" not in environment


def test_names_and_globs_bring_more() -> None:
    assert seen("CI", "RUFF_*").items() >= {"CI": "true", "RUFF_CACHE_DIR": "/x"}.items()


def test_a_glob_never_brings_a_secret_or_what_is_the_runners() -> None:
    brought = seen("*").keys() - seen().keys()
    assert brought == {"CI", "RUFF_CACHE_DIR", "LD_PRELOAD"}
    assert seen("*_TOKEN", "db_*").keys() == seen().keys()


def test_a_secret_named_exactly_is_brought_but_never_one_of_the_runners() -> None:
    assert seen("NPM_TOKEN")["NPM_TOKEN"] == "t"
    assert seen("db_password")["db_password"] == "p"
    runners = ("ANTHROPIC_API_KEY", "GITHUB_ENV", "GIT_DIR", "ACTIONS_RUNTIME_TOKEN", "HOME")
    assert seen(*runners) == seen()


def test_there_is_always_a_path_and_a_language() -> None:
    environment = tool_environment({}, (), Path("/h"), Path("/t"))
    assert environment["PATH"] == "/usr/local/bin:/usr/bin:/bin"
    assert environment["LANG"] == "C.UTF-8"
