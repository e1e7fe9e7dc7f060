"""One part of the plan for each machine: which one we are, and who takes which items. Pure.

The cut is the same on every machine that sees the same plan and the same recorded durations;
`lock.json` holds it, so that joining notices when two machines cut differently.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from attrs import frozen

from harness_batch.errors import UsageError
from harness_batch.plan.item import Item

MOST: Final = 10_000
"""Shards of a run; more is a slip of the keyboard."""


@frozen
class Shard:
    """Part `index` of `total`, counted from 1."""

    index: int
    total: int

    def __attrs_post_init__(self) -> None:
        """Raises: ValueError for a part that there is not."""
        if not 1 <= self.index <= self.total <= MOST:
            raise ValueError(f"{self}: write I/N with 1 <= I <= N <= {MOST}")

    def __str__(self) -> str:
        """As `--shard` takes it."""
        return f"{self.index}/{self.total}"


@frozen
class Cut:
    """Who takes what of the whole plan."""

    shard: Shard
    """Ours."""
    items: tuple[Item, ...]
    """Of all shards."""
    shards: tuple[tuple[str, ...], ...]
    """The item keys of each."""


@frozen
class Found:
    """A shard, and what it was read from, in words."""

    shard: Shard
    words: str


@frozen
class _System:
    """How a CI system tells its parallel jobs apart."""

    name: str
    index: str
    total: str
    first: int
    """The index of the first job."""


SYSTEMS: Final = (
    _System("GitLab", "CI_NODE_INDEX", "CI_NODE_TOTAL", 1),
    _System("CircleCI", "CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL", 0),
    _System("Buildkite", "BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT", 0),
    _System("Bitbucket", "BITBUCKET_PARALLEL_STEP", "BITBUCKET_PARALLEL_STEP_COUNT", 0),
    _System("Semaphore", "SEMAPHORE_JOB_INDEX", "SEMAPHORE_JOB_COUNT", 1),
    _System("Bazel", "TEST_SHARD_INDEX", "TEST_TOTAL_SHARDS", 0),
    _System("Slurm", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", 0),
    _System("Kubernetes", "JOB_COMPLETION_INDEX", "JOB_COMPLETIONS", 0),
)
"""Kubernetes sets the index only: the job's template sets JOB_COMPLETIONS beside `completions`."""


def shard_of(word: str, environ: Mapping[str, str]) -> Found:
    """`I/N`, or `auto`: what the CI system says. Raises: UsageError."""
    if word == "auto":
        return _detected(environ)
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", word, re.ASCII)
    if not found:
        raise UsageError(f"--shard {word}: write I/N, e.g. 2/4, or auto")
    return Found(_shard(f"--shard {word}", int(found[1]), int(found[2])), f"shard {word}")


def _detected(environ: Mapping[str, str]) -> Found:
    for system in SYSTEMS:
        if environ.get(system.index) is None:
            continue
        if not environ.get(system.total):
            raise UsageError(
                f"--shard auto: {system.name} sets {system.index} but no {system.total}; "
                f"set {system.total} to the number of jobs, or write --shard I/N"
            )
        index = _number(system.index, environ) - _first(system, environ) + 1
        shard = _shard(f"--shard auto ({system.name})", index, _number(system.total, environ))
        words = f"shard {shard}, as {system.index} and {system.total} of {system.name} say"
        return Found(shard, words)
    return Found(Shard(1, 1), "shard 1/1: no variable of a CI system names one")


def _first(system: _System, environ: Mapping[str, str]) -> int:
    """Slurm's arrays begin where the user says."""
    if system.name == "Slurm" and environ.get("SLURM_ARRAY_TASK_MIN"):
        return _number("SLURM_ARRAY_TASK_MIN", environ)
    return system.first


def _number(name: str, environ: Mapping[str, str]) -> int:
    text = environ[name]
    if not re.fullmatch(r"\d{1,6}", text, re.ASCII):
        raise UsageError(f"--shard auto: {name}={text!r} is no number")
    return int(text)


def _shard(where: str, index: int, total: int) -> Shard:
    try:
        return Shard(index, total)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from error


def cut_keys(
    keys: Sequence[str], total: int, seconds: Callable[[str], float]
) -> tuple[tuple[str, ...], ...]:
    """The keys of each shard: the longest first, each to the shard that has least to do.

    `seconds` is how long an item took before, or is thought to take. Within a shard the keys keep
    their order.
    """
    weights = {key: seconds(key) for key in keys}
    shards: list[set[str]] = [set() for _ in range(total)]
    loads = [(0.0, 0, index) for index in range(total)]
    for key in sorted(keys, key=lambda key: -weights[key]):  # stable: ties in the plan's order
        load, count, index = min(loads)
        shards[index].add(key)
        loads[index] = (load + weights[key], count + 1, index)
    return tuple(tuple(key for key in keys if key in shard) for shard in shards)
