"""Checks (shell commands) and expectations (facts about the result) after the agent's work."""

from collections import deque
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

from attrs import define, field, frozen
from pathspec import PathSpec

from harness_batch.engine.log import AttemptLog
from harness_batch.processes import Command, CommandEnd, Launcher
from harness_batch.recipe.record import Check, Expectations
from harness_batch.records import CheckResult

KEPT_OUTPUT_BYTES = 16 * 1024
"""The end of what a check prints; failures stand at the end."""


@define
class Tail:
    """Takes chunks, keeps the newest `KEPT_OUTPUT_BYTES`."""

    chunks: deque[bytes] = field(factory=deque)
    size: int = 0

    def take(self, chunk: bytes) -> None:
        """Add a chunk, let go of what is too old."""
        self.chunks.append(chunk[-KEPT_OUTPUT_BYTES:])
        self.size += len(self.chunks[-1])
        while self.size - len(self.chunks[0]) >= KEPT_OUTPUT_BYTES:
            self.size -= len(self.chunks.popleft())

    def text(self) -> str:
        """What is kept, readable."""
        return b"".join(self.chunks)[-KEPT_OUTPUT_BYTES:].decode("utf-8", "backslashreplace")


async def run_shell(
    launcher: Launcher, script: str, cwd: Path, seconds: float
) -> tuple[CommandEnd, str]:
    """Run a bash script; the end of its output comes with how it ended. Raises: SandboxError."""
    tail = Tail()
    argv = ("bash", "--noprofile", "--norc", "-c", script)
    end = await launcher.run(Command(argv=argv, cwd=cwd, timeout=seconds), tail.take)
    return end, tail.text()


async def run_check(check: Check, launcher: Launcher, cwd: Path, log: AttemptLog) -> CheckResult:
    """One check in the session's sandbox; passed means exit code 0. Raises: SandboxError."""
    end, output = await run_shell(launcher, check.run, cwd, check.timeout)
    passed = end.exit_code == 0 and not end.timed_out
    return CheckResult(
        session_id=log.session_id,
        attempt_id=log.attempt_id,
        name=check.name,
        kind="check",
        passed=passed,
        exit_code=end.exit_code,
        duration_s=end.duration_s,
        reason=None if passed else how_it_ended(end, check.timeout),
        output=output,
    )


def how_it_ended(end: CommandEnd, timeout: float) -> str:
    """A command's end in words."""
    if end.timed_out:
        return f"timed out after {timeout:g} s"
    if end.limit:
        return end.limit
    code = end.exit_code
    return f"killed by signal {-code}" if code is not None and code < 0 else f"exit code {code}"


@frozen(kw_only=True)
class Result:
    """What expectations look at."""

    answer: str
    paths: tuple[str, ...]
    """Paths that the patch touches."""
    cost_usd: Decimal | None
    tools_used: frozenset[str]


def unmet(expect: Expectations, result: Result) -> Iterable[tuple[str, str | None]]:
    """Each declared expectation by name, with why it does not hold (None: it holds). Pure."""
    paths, used = result.paths, result.tools_used
    if expect.patch == "required":
        yield "patch", None if paths else "nothing was changed"
    if expect.patch == "none":
        yield "patch", f"{len(paths)} file(s) were changed" if paths else None
    if expect.answer == "nonempty":
        yield "answer", None if result.answer.strip() else "the answer is empty"
    if expect.max_files is not None:
        over = len(paths) > expect.max_files
        yield (
            "max_files",
            f"{len(paths)} files changed, {expect.max_files} expected" if over else None,
        )
    if expect.max_cost_usd is not None:
        yield "max_cost_usd", _dear(result.cost_usd, expect.max_cost_usd)
    if expect.tools_used:
        missing = [name for name in expect.tools_used if name not in used]
        yield "tools_used", f"not used: {', '.join(missing)}" if missing else None
    if expect.tools_unused:
        wrong = [name for name in expect.tools_unused if name in used]
        yield "tools_unused", f"used: {', '.join(wrong)}" if wrong else None
    if expect.touches:
        yield "touches", _strays(expect.touches, paths)


def _dear(cost: Decimal | None, most: Decimal) -> str | None:
    if cost is None:
        return "the cost is unknown: the model has no price"
    return f"cost {cost} USD, at most {most} expected" if cost > most else None


def _strays(globs: tuple[str, ...], paths: tuple[str, ...]) -> str | None:
    spec = PathSpec.from_lines("gitignore", globs)
    strays = [path for path in paths if not spec.match_file(path)]
    if strays:
        return f"outside {', '.join(globs)}: {', '.join(strays[:5])}"
    return None if paths else "nothing was changed"
