"""Shards: which part of the plan is ours, and who takes what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_batch.errors import UsageError
from harness_batch.plan.shards import Shard, cut_keys, shard_of

AUTO = {
    "GitLab": ({"CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "4"}, Shard(2, 4)),
    "CircleCI": ({"CIRCLE_NODE_INDEX": "1", "CIRCLE_NODE_TOTAL": "4"}, Shard(2, 4)),
    "Buildkite": (
        {"BUILDKITE_PARALLEL_JOB": "3", "BUILDKITE_PARALLEL_JOB_COUNT": "4"},
        Shard(4, 4),
    ),
    "Bitbucket": (
        {"BITBUCKET_PARALLEL_STEP": "0", "BITBUCKET_PARALLEL_STEP_COUNT": "2"},
        Shard(1, 2),
    ),
    "Semaphore": ({"SEMAPHORE_JOB_INDEX": "1", "SEMAPHORE_JOB_COUNT": "3"}, Shard(1, 3)),
    "Bazel": ({"TEST_SHARD_INDEX": "0", "TEST_TOTAL_SHARDS": "3"}, Shard(1, 3)),
    "Slurm": (
        {
            "SLURM_ARRAY_TASK_ID": "12",
            "SLURM_ARRAY_TASK_COUNT": "3",
            "SLURM_ARRAY_TASK_MIN": "10",
        },
        Shard(3, 3),
    ),
    "Kubernetes": ({"JOB_COMPLETION_INDEX": "4", "JOB_COMPLETIONS": "5"}, Shard(5, 5)),
}


@pytest.mark.parametrize("system", AUTO)
def test_auto_reads_what_each_ci_system_sets(system: str) -> None:
    environ, shard = AUTO[system]
    found = shard_of("auto", environ)
    assert found.shard == shard
    assert system in found.words


def test_without_a_ci_system_auto_is_everything_and_says_so() -> None:
    found = shard_of("auto", {"HOME": "/home/me"})
    assert found.shard == Shard(1, 1)
    assert "no variable" in found.words


@pytest.mark.parametrize("word", ["0/4", "5/4", "1", "a/b", "1/0", "1/2/3", "-1/2", "1/99999", ""])
def test_a_shard_that_there_is_not_is_refused_with_the_form(word: str) -> None:
    with pytest.raises(UsageError, match="I/N"):
        shard_of(word, {})


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({"JOB_COMPLETION_INDEX": "0"}, "JOB_COMPLETIONS"),
        ({"CI_NODE_INDEX": "x", "CI_NODE_TOTAL": "2"}, "CI_NODE_INDEX='x'"),
        ({"CI_NODE_INDEX": "3", "CI_NODE_TOTAL": "2"}, "3/2"),
    ],
)
def test_half_a_ci_system_is_told_by_its_variable(environ: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told.replace("/", "\\/")):
        shard_of("auto", environ)


def test_the_longest_items_are_spread_first() -> None:
    seconds = {"a": 60.0, "b": 50.0, "c": 40.0, "d": 30.0, "e": 10.0}
    assert cut_keys(list(seconds), 2, seconds.__getitem__) == (("a", "d", "e"), ("b", "c"))


def test_items_that_nothing_is_known_of_are_dealt_in_turn() -> None:
    assert cut_keys(["a", "b", "c", "d", "e"], 2, lambda _: 60.0) == (("a", "c", "e"), ("b", "d"))


@given(st.dictionaries(st.text(max_size=5), st.floats(0, 1e6), max_size=30), st.integers(1, 12))
def test_every_item_is_in_exactly_one_shard(seconds: dict[str, float], total: int) -> None:
    shards = cut_keys(list(seconds), total, seconds.__getitem__)
    assert len(shards) == total
    assert sorted(key for shard in shards for key in shard) == sorted(seconds)
    assert cut_keys(list(seconds), total, seconds.__getitem__) == shards
