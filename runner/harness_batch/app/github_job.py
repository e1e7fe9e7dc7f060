"""A run inside a job of GitHub Actions: what it may trust, its command line, what it says back."""

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

from attrs import evolve, frozen

from harness_batch.errors import GitError, UsageError
from harness_batch.github.outputs import as_file, nothing_ran, outputs_of
from harness_batch.github.trigger import Trigger, refusal, trigger_of
from harness_batch.workspace.publish import scratch
from harness_batch.workspace.repository import Repository, discover, resolve_base

_MOST_EVENT_BYTES: Final = 64 << 20
NOTHING_RAN: Final = 2
"""The exit code of a run that did not begin. What lies in its folder is then of somebody else."""


@frozen(kw_only=True)
class Job:
    """What the action was given, by the variables of its step."""

    recipes: tuple[str, ...]
    params: tuple[str, ...]
    args: tuple[str, ...]
    target_allowed: bool
    out: Path
    summary: Path | None
    """The step summary; None when none is wanted."""
    output: Path | None
    """GITHUB_OUTPUT."""


def job_of(environ: Mapping[str, str], cwd: Path) -> Job:
    """Raises: UsageError."""
    recipes = _lines(environ.get("ACTION_RECIPES", ""))
    if not recipes:
        raise UsageError("the input `recipes` names no recipe")
    try:
        args = tuple(shlex.split(environ.get("ACTION_ARGS", "")))
    except ValueError as error:
        raise UsageError(f"the input `args` cannot be split into words: {error}") from error
    if any(word.partition("=")[0] == "--out" for word in args):
        raise UsageError("the input `args` has --out: say it with the input `out`")
    summary = environ.get("GITHUB_STEP_SUMMARY", "")
    output = environ.get("GITHUB_OUTPUT", "")
    return Job(
        recipes=recipes,
        params=_lines(environ.get("ACTION_PARAMS", "")),
        args=args,
        target_allowed=environ.get("ACTION_ALLOW_TARGET") == "true",
        out=cwd / (environ.get("ACTION_OUT") or "harness-run"),
        summary=Path(summary) if summary and environ.get("ACTION_SUMMARY") != "false" else None,
        output=Path(output) if output else None,
    )


def read_trigger(environ: Mapping[str, str]) -> Trigger:
    """The event of the job. Raises: UsageError when its file cannot be read."""
    path = environ.get("GITHUB_EVENT_PATH", "")
    if not path:
        return trigger_of(environ, None)
    try:
        if Path(path).stat().st_size > _MOST_EVENT_BYTES:
            raise UsageError(f"GITHUB_EVENT_PATH: {path} is too large for an event")
        event = json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"GITHUB_EVENT_PATH: {path} cannot be read: {error}") from error
    return trigger_of(environ, event)


def words_of(job: Job, trigger: Trigger, cwd: Path, aside: Path) -> list[str]:
    """The command line of `run`. In a pull request recipes come from its base, put into `aside`.

    Raises: UsageError when the checkout must not be trusted, or holds no base.
    """
    repository = _repository(cwd)
    checked_out = resolve_base(repository, "HEAD") if repository else None
    if (reason := refusal(trigger, checked_out, target_allowed=job.target_allowed)) is not None:
        raise UsageError(reason)
    recipes = job.recipes
    if trigger.reviews:
        if repository is None:
            raise UsageError(
                f"{cwd} is in no git repository, and what a pull request is trusted with comes "
                "from its base commit: check out into the workspace itself, without `path`"
            )
        _refuse_brought(repository, job.out)
        recipes = _from_base(repository, trigger, recipes, cwd, aside)
    given = [word for param in job.params for word in ("-p", param)]
    summary = ["--summary", str(job.summary)] if job.summary else []
    out = ["--out", str(job.out), "--progress", "plain"]
    return ["run", *recipes, *given, *out, *summary, *job.args]


def environment_of(trigger: Trigger) -> dict[str, str]:
    """What the runner leaves unsaid: events of reviews have no GITHUB_BASE_REF."""
    return {"GITHUB_BASE_REF": trigger.base_ref} if trigger.reviews and trigger.base_ref else {}


def say(job: Job, code: int) -> None:
    """The outputs of the step. Raises: OSError, when the runner's file cannot be written."""
    if job.output is None:
        return
    result = _result(job.out / "result.json") if code != NOTHING_RAN else None
    outputs = nothing_ran(code) if result is None else outputs_of(result, str(job.out))
    outputs["exit-code"] = str(code)
    with job.output.open("a", encoding="utf-8", errors="replace") as file:
        file.write(as_file(outputs))


def _result(path: Path) -> dict[str, Any] | None:
    try:
        result = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return result if isinstance(result, dict) else None


def _refuse_brought(repository: Repository, out: Path) -> None:
    """A change that brings the run's folder could bring a run, too, or a link to elsewhere.

    Raises: UsageError.
    """
    place = Path(os.path.normpath(out))
    if not place.is_relative_to(repository.path):
        return
    for path in (place, *place.parents):
        if path.is_symlink():
            raise UsageError(f"the input `out`: {path} is a link; name another folder")
    inside = place.relative_to(repository.path).as_posix()
    if inside == "." or repository.git().now("ls-tree", "--name-only", "-z", "HEAD", "--", inside):
        raise UsageError(f"the input `out`: the pull request has {inside}; name another folder")


def _lines(text: str) -> tuple[str, ...]:
    lines = (line.strip() for line in text.splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def _repository(cwd: Path) -> Repository | None:
    try:
        return discover(cwd)
    except GitError:
        return None


def _from_base(
    repository: Repository, trigger: Trigger, recipes: tuple[str, ...], cwd: Path, aside: Path
) -> tuple[str, ...]:
    """Recipes with all that lies beside them, as they are at the base. Raises: UsageError."""
    inside = [_inside(repository, cwd / word) for word in recipes]
    if not any(inside):
        return recipes
    base = trigger.base_sha
    try:
        found = resolve_base(repository, base) if base else None
    except GitError:
        found = None
    if found is None:
        raise UsageError(
            f"the base commit {base or '(not in the event)'} is not in this clone, and recipes of "
            "a pull request are taken from it: check out with `fetch-depth: 0`"
        )
    folders = {str(path.parent) for path in inside if path is not None}
    aside.mkdir(parents=True, exist_ok=True)
    with scratch(repository, found) as git:
        literal = {**git.env, "GIT_LITERAL_PATHSPECS": "1"}
        evolve(git, work_tree=aside, env=literal).now(
            "checkout", "--quiet", found, "--", *sorted(folders)
        )
    return tuple(
        word if path is None else _at_base(aside, path, found)
        for word, path in zip(recipes, inside, strict=True)
    )


def _at_base(aside: Path, path: PurePosixPath, base: str) -> str:
    if not (aside / path).is_file():
        raise UsageError(f"the recipe {path} is not in the base commit {base}")
    return str(aside / path)


def _inside(repository: Repository, path: Path) -> PurePosixPath | None:
    """The path in the repository; None for a bundled recipe's name or a file elsewhere."""
    place = Path(os.path.normpath(path))
    if place.suffix not in (".yaml", ".yml", ".json"):
        return None
    if not place.is_relative_to(repository.path):
        return None
    return PurePosixPath(place.relative_to(repository.path).as_posix())
