"""The runner's own git calls: nothing that a repository holds can make them run something.

The program by its absolute path, an environment made from nothing (so no GIT_* of a CI step gets
in), no configuration of the user or the host, explicit GIT_DIR and GIT_WORK_TREE, no stdin, no
prompt, a time limit. What could run code (hooks, fsmonitor, filters, external diffs) is off by the
command-line level of git's configuration, which wins over every file; filters and drivers would
have to be declared in the configuration of the git directory, and that is the runner's own.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from attrs import Factory, evolve, frozen

from harness_batch.errors import GitError, SandboxError
from harness_batch.processes import Command, Launcher, own_program

SECONDS = 300.0
"""The longest that one git call may take; a checkout of a big repository is the longest one."""

SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.quotePath": "false",
    "core.protectHFS": "true",
    "core.protectNTFS": "true",
    "core.bigFileThreshold": "16m",
    "core.pager": "cat",
    "core.editor": "false",
    "core.sshCommand": "false",
    "core.askPass": "",
    "credential.helper": "",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "commit.gpgSign": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "safe.bareRepository": "explicit",
    "diff.noprefix": "false",
    "diff.mnemonicPrefix": "false",
    "format.signature": "",
}


@cache
def git_program() -> str:
    """Absolute path of git. Raises: GitError when there is none on PATH."""
    found = own_program("git")
    if found is None:
        raise GitError("git is not installed, or not on PATH")
    return found


@frozen(kw_only=True)
class Git:
    """git on one git directory. Calls give stdout and raise GitError with git's own words."""

    git_dir: Path
    work_tree: Path | None = None
    index: Path | None = None
    env: Mapping[str, str] = Factory(dict)
    launcher: Launcher | None = None
    """Where the calls run; None: as plain children of the runner."""

    def with_index(self, index: Path) -> "Git":
        """The same with another index file."""
        return evolve(self, index=index)

    def environment(self) -> dict[str, str]:
        """The whole environment of the calls."""
        places = {
            "GIT_DIR": self.git_dir,
            "GIT_WORK_TREE": self.work_tree,
            "GIT_INDEX_FILE": self.index,
        }
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": os.devnull,
            "LC_ALL": "C",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            # Unlike protocol.allow, no `protocol.NAME.allow` of a repository overrules it.
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_CONFIG_COUNT": str(len(SETTINGS)),
            **{f"GIT_CONFIG_KEY_{n}": key for n, key in enumerate(SETTINGS)},
            **{f"GIT_CONFIG_VALUE_{n}": value for n, value in enumerate(SETTINGS.values())},
            **{name: str(path) for name, path in places.items() if path is not None},
            **self.env,
        }

    async def __call__(self, *args: str, stdin: bytes = b"", fine: tuple[int, ...] = (0,)) -> bytes:
        """Standard output of `git *args`.

        Raises: GitError when the exit code is not among `fine`.
        """
        argv = (git_program(), *args)
        code, out, err = await (
            self._child(argv, stdin)
            if self.launcher is None
            else self._launched(self.launcher, argv, stdin)
        )
        if code not in fine:
            raise GitError(_complaint(args, err))
        return out

    def now(self, *args: str, fine: tuple[int, ...] = (0,)) -> bytes:
        """As a call, but blocking: for the few quick questions before a run begins."""
        try:
            done = subprocess.run(
                (git_program(), *args),
                cwd=self._folder(),
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GitError(f"git {args[0]}: {error}") from error
        if done.returncode not in fine:
            raise GitError(_complaint(args, done.stderr))
        return done.stdout

    def _folder(self) -> Path:
        return self.work_tree or self.git_dir

    async def _child(self, argv: Sequence[str], stdin: bytes) -> tuple[int | None, bytes, bytes]:
        import trio  # noqa: PLC0415 - 120 ms that `validate` and `plan` do not need: they ask `now`

        try:
            with trio.fail_after(SECONDS):
                done = await trio.run_process(
                    argv,
                    stdin=stdin,
                    capture_stdout=True,
                    capture_stderr=True,
                    check=False,
                    cwd=self._folder(),
                    env=self.environment(),
                    start_new_session=True,  # Ctrl-C must not cut a patch in the making
                )
        except trio.TooSlowError as error:
            raise GitError(f"git {argv[1]} took longer than {SECONDS:.0f} s") from error
        except OSError as error:
            raise GitError(f"git {argv[1]}: {error}") from error
        return done.returncode, done.stdout, done.stderr

    async def _launched(
        self, launcher: Launcher, argv: Sequence[str], stdin: bytes
    ) -> tuple[int | None, bytes, bytes]:
        """Through the sandbox, whose commands have no stdin: it comes from a file then."""
        out: list[bytes] = []
        err: list[bytes] = []
        name = argv[1]
        file = self.git_dir / "stdin"
        if stdin:
            _write_anew(file, stdin)
            argv = ("/bin/sh", "-c", 'exec "$@" < "$0"', str(file), *argv)
        command = Command(
            argv=tuple(argv), cwd=self._folder(), env=self.environment(), timeout=SECONDS
        )
        try:
            end = await launcher.run(command, out.append, err.append)
        except SandboxError as error:
            raise GitError(f"git {name}: {error}") from error
        return end.exit_code, b"".join(out), b"".join(err)


def _write_anew(file: Path, content: bytes) -> None:
    """No link is followed: the sandbox may write to that folder. Raises: GitError."""
    try:
        file.unlink(missing_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as fresh:
            fresh.write(content)
    except OSError as error:
        raise GitError(f"cannot write {file}: {error}") from error


def _complaint(args: Sequence[str], err: bytes) -> str:
    said = err.decode("utf-8", "replace").strip() or "failed without a word"
    return f"git {args[0]}: {said}"
