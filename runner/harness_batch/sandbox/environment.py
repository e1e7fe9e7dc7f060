"""What tools see of the environment: an allow-list, never the runner's own environment.

Always there: PATH, a private HOME and TMPDIR, LANG, LC_*, TERM, a git identity and settings that
keep git from asking or reading the user's configuration. Beyond that only what the recipe's `env`
names. A glob never brings a variable whose name sounds like a secret; naming one exactly does.
What belongs to the runner or its CI step is never seen, whatever is named.
"""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import urlsplit

DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"

KEPT = ("LANG", "LC_*", "TERM")
"""Seen by every tool when they are set."""

SECRET = (
    *(
        "*_KEY",
        "*_KEYS",
        "*_KEY_*",
        "*APIKEY*",
        "*_TOKEN",
        "*_TOKENS",
        "*_TOKEN_*",
        "TOKEN",
        "*SECRET*",
    ),
    *(
        "*PASSWORD*",
        "*PASSWD*",
        "*_PASS",
        "*PASSPHRASE*",
        "*CREDENTIAL*",
        "*_PAT",
        "*_AUTH",
        "*_AUTH_*",
    ),
    *(
        "*COOKIE*",
        "*_DSN",
        "*WEBHOOK*",
        "*_PRIVATE*",
        "SSH_AUTH_SOCK",
        "SSH_AGENT_PID",
        "DOCKER_HOST",
    ),
)
"""Names that a glob never brings, in any case."""

RUNNERS = (
    *("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"),
    *(
        "ACTIONS_*_TOKEN",
        "ACTIONS_*_URL",
        "ANTHROPIC_*",
        "OPENAI_*",
        "COPILOT_*",
        "HARNESS_BATCH_*",
    ),
    "GIT_*",
    *("HOME", "TMPDIR", "TMP", "TEMP", "PATH"),
)
"""The runner's, its CI step's, or set here: never passed on, not even by name."""

SHORTEST_VALUE = 12
"""Characters of a secret that is known by its name only; `disabled` and `true` are none."""
SHORTEST_PASSWORD = 6

GIT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "harness-batch",
    "GIT_AUTHOR_EMAIL": "harness-batch@users.noreply.localhost",
    "GIT_COMMITTER_NAME": "harness-batch",
    "GIT_COMMITTER_EMAIL": "harness-batch@users.noreply.localhost",
}
"""The session's git identity; no prompt, no editor, no configuration of the host."""


def tool_environment(
    environ: Mapping[str, str], allow: Sequence[str], home: Path, tmp: Path
) -> dict[str, str]:
    """The whole environment of a session's commands.

    `environ` is the runner's, `allow` the recipe's `env` (names or globs), `home` and `tmp` are
    private folders that exist. PATH keeps its absolute entries: an empty or relative one would
    mean the folder that the agent writes to.
    """
    chosen = {
        name: value
        for name, value in environ.items()
        if not _matches(name, RUNNERS) and (_matches(name, KEPT) or _asked_for(name, allow))
    }
    entries = [entry for entry in environ.get("PATH", "").split(":") if entry.startswith("/")]
    return {
        "LANG": "C.UTF-8",
        **chosen,
        "PATH": ":".join(entries) or DEFAULT_PATH,
        "HOME": str(home),
        "TMPDIR": str(tmp),
        **GIT,
    }


def secret_values(environ: Mapping[str, str]) -> Iterator[str]:
    """The values of variables that sound like a secret, as far as they can be one.

    Places of files and sockets are none, nor what is short enough to be a word; of a URL it is the
    password.
    """
    for name, raw in environ.items():
        value = raw.strip()
        if not sounds_secret(name) or value.startswith(("/", "~", ".")):
            continue
        if "://" in value:
            password = _password(value)
            if len(password) >= SHORTEST_PASSWORD:
                yield password
        elif len(value) >= SHORTEST_VALUE:
            yield value


def _password(url: str) -> str:
    try:
        return urlsplit(url).password or ""
    except ValueError:
        return ""


def _asked_for(name: str, allow: Sequence[str]) -> bool:
    if name in allow:
        return True
    return not sounds_secret(name) and _matches(name, allow)


def sounds_secret(name: str) -> bool:
    """Whether a variable of that name is taken for a secret."""
    return _matches(name.upper(), SECRET)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
