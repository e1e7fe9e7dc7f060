"""Where hosts keep what no agent is to see: homes of secrets, and files of the CI runner."""

import os
import pwd
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path

from harness_batch.permissions.secret_homes import IN_CONFIG, IN_HOME
from harness_batch.sandbox.environment import sounds_secret
from harness_batch.sandbox.policy import Treatment

_OF_THE_HOST = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers"),
    *("/etc/ssl/private", "/etc/kubernetes", "/etc/docker", "/etc/krb5.keytab"),
    *("/run/docker.sock", "/run/podman", "/run/containerd", "/run/crio", "/run/secrets"),
    *("/run/credentials", "/run/user", "/var/lib/docker", "/var/lib/containerd"),
)
_NAMED_BY = (
    *("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"),
    *("RUNNER_TEMP", "AGENT_TEMPDIRECTORY", "BITBUCKET_PIPE_STORAGE_DIR", "BASH_ENV"),
    *("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG", "AZURE_CONFIG_DIR", "KUBECONFIG"),
    *("DOCKER_CONFIG", "NETRC", "NPM_CONFIG_USERCONFIG", "PIP_CONFIG_FILE", "GNUPGHOME"),
    *("SSH_AUTH_SOCK", "GH_CONFIG_DIR", "CI_JOB_TOKEN_FILE", "GIT_CONFIG_GLOBAL"),
    *("XDG_RUNTIME_DIR", "CREDENTIALS_DIRECTORY", "PASSWORD_STORE_DIR", "PGPASSFILE"),
    *("BOTO_CONFIG", "RCLONE_CONFIG", "REGISTRY_AUTH_FILE", "TF_CLI_CONFIG_FILE"),
    *("CODEX_HOME", "CLAUDE_CONFIG_DIR", "npm_config_userconfig"),
)
"""Variables whose value is the path of a secret or of a file that commands the CI runner."""

_MOST_ENTRIES = 500


def hidden(environ: Mapping[str, str], more: Iterable[Path] = ()) -> dict[Path, Treatment]:
    """Every such path that is there, resolved, and the host's temporary folders. Blocks."""
    places = (*_places(environ), *more)
    found = {Path(os.path.realpath(place)) for place in places}
    # A variable may name anything; what holds the whole system is not hidden on its word.
    return {place: "hidden" for place in found if len(place.parts) > 1 and _is_there(place)}


def homes(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The user's home as the environment has it, and as the host's list of users has it."""
    named = [environ.get("HOME", "")]
    with suppress(KeyError):
        named.append(pwd.getpwuid(os.getuid()).pw_dir)
    return tuple(dict.fromkeys(Path(name) for name in named if len(Path(name).parts) > 1))


def _places(environ: Mapping[str, str]) -> Iterator[Path]:
    users = homes(environ)
    for home in users:
        yield from (home / name for name in IN_HOME)
        for name in IN_HOME:
            yield from _linked(home / name, [user.resolve() for user in users])
    configs = {home / ".config" for home in users}
    if config := environ.get("XDG_CONFIG_HOME", ""):
        configs.add(Path(config))
    for config_home in configs:
        yield from (config_home / name for name in IN_CONFIG)
        for name in IN_CONFIG:
            yield from _linked(config_home / name, [user.resolve() for user in users])
    yield from map(Path, _OF_THE_HOST)
    for name, value in environ.items():
        if value.startswith("/") and (name in _NAMED_BY or _is_secret_file(name, value)):
            yield Path(value)
    if project := environ.get("CI_PROJECT_DIR", ""):
        yield Path(f"{project}.tmp")  # GitLab's variables of the type file
    yield from map(Path, ("/tmp", "/var/tmp", tempfile.gettempdir()))  # noqa: S108 - made private


def _is_there(place: Path) -> bool:
    try:
        return place.exists()
    except OSError:
        return False


def _is_secret_file(name: str, value: str) -> bool:
    """As `DB_PASSWORD_FILE=/etc/shop/db`; never a folder, which may hold anything."""
    try:
        return sounds_secret(name) and Path(value).is_file()
    except OSError:
        return False


def _linked(place: Path, users: Iterable[Path]) -> Iterator[Path]:
    """Files of users that links in a home of secrets lead to: many keep such files elsewhere.

    The upper two levels are looked at, no more than a few hundred entries.
    """
    with suppress(OSError):
        for entry in islice(chain(place.glob("*"), place.glob("*/*")), _MOST_ENTRIES):
            if entry.is_symlink() and entry.is_file():
                target = entry.resolve()
                if any(target.is_relative_to(user) for user in users):
                    yield target
