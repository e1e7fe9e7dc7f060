"""What counts as another answer, and what only looks like one."""

from typing import Any

import pytest
from attrs import evolve

from harness_batch.app.divergence import as_text, differences, normal, renewed
from harness_batch.models.recording import (
    Called,
    RecordedCall,
    RecordedSession,
    Recording,
    Result,
    Said,
    Trouble,
)
from harness_batch.models.renames import Renames, portable

RUN, SES = "run_01J9Z3NDEKTSV4RRFFQ69G5FAV", "ses_01J9Z3NDEKTSV4RRFFQ69G5FAW"
OTHER_RUN, OTHER_SES = RUN[:-1] + "X", SES[:-1] + "Y"
TREE = f"/home/u/.cache/harness-batch/worktrees/{RUN}/{SES}-1/tree"
OTHER_TREE = f"/root/worktrees/{OTHER_RUN}/{OTHER_SES}-2/tree"

SAME = [
    (f"{TREE}/a.py:3", f"{OTHER_TREE}/a.py:3"),
    ("/scratch/hb-a8f_3kx1/x", "/var/scratch/hb-zzzzzzzz/x"),
    (f"/a/.harness/runs/{RUN}/items/x/attempt-1/outputs/c", "/b/items/x/attempt-2/outputs/c"),
    (f"session: {SES}", f"session: {OTHER_SES}"),
    ("Ran 3 tests in 0.001s", "Ran 3 tests in 12.5s"),
    ("took 3 ms", "took 401 ms"),
    ("real\t0m0.004s", "real\t1m2.100s"),
    ("at 2026-01-02T03:04:05.6Z", "at 2027-11-12 23:04:05+01:00"),
    ("2026-01-02", "2026-01-03"),
    ("Fri Jan  2 03:04:05 UTC 2026", "Sat Dec 12 13:14:15 CET 2026"),
    ("-rw-r--r-- 1 u u 5 Jan  2 03:04 a", "-rw-r--r-- 1 u u 5 Feb 12 13:14 a"),
    ("[12:00:01] go", "[23:59:59.123] go"),
    ("<A object at 0x7f3a2b1c4d50>", "<A object at 0x7f0000000000>"),
    ("pid 71", "pid 32000"),
    ("[main 1a2b3c4] Fix", "[main ffffff0] Fix"),
]
DIFFERENT = [
    ("3 passed", "2 passed"),
    ("exit code 0", "exit code 1"),
    (f"{TREE}/a.py", f"{TREE}/b.py"),
    ("0x10", "0x11"),
    ("version 1.2.3", "version 1.2.4"),
    ("line 3", "line 4"),
    ("commit 1a2b3c4", "commit ffffff0"),
]


@pytest.mark.parametrize(("then", "now"), SAME)
def test_what_is_new_in_every_run_is_no_difference(then: str, now: str) -> None:
    assert normal(then) == normal(now)


@pytest.mark.parametrize(("then", "now"), DIFFERENT)
def test_everything_else_is_one(then: str, now: str) -> None:
    assert normal(then) != normal(now)


def call(output: str, name: str = "bash", *, failed: bool = False) -> Called:
    result = Result(failed=failed, output=output)
    return Called(call_id="c", name=name, arguments="{}", result=result)


def recorded(*calls: Called, **more: Any) -> Recording:
    replies = tuple(RecordedCall(model="m/x", purpose="step", blocks=(one,)) for one in calls)
    session = RecordedSession(recipe="r", agent="a", prompts=("p",), status="passed", calls=replies)
    return Recording(
        recipe="r", item="r", params={}, matrix={}, agent="a", base="a" * 40,
        sessions=(evolve(session, **more),),
    )  # fmt: skip


def test_a_difference_is_shown_as_a_diff_of_the_call() -> None:
    then, now = recorded(call("a\nb\nc"), call("x")), recorded(call("a\nB\nc"), call("x"))
    (found,) = differences(then, now)

    assert found.about == "call 1: bash {}"
    assert found.lines[-4:] == (" a", "-b", "+B", " c")
    assert as_text((found,)).startswith("--- call 1: bash {}\n")


def test_the_order_of_what_is_listed_newest_first_is_none() -> None:
    assert not differences(recorded(call("a\nb", "glob")), recorded(call("b\na", "glob")))
    assert differences(recorded(call("a\nb")), recorded(call("b\na")))


def test_failing_calls_checks_outcomes_and_children_are_compared() -> None:
    then = recorded(call("a"), checks={"tests": True})
    now = recorded(call("a", failed=True), checks={"tests": False}, status="failed", reason="x")
    fewer = evolve(then, sessions=(*then.sessions, evolve(then.sessions[0], parent=0)))

    assert [d.about for d in differences(then, now)] == [
        "call 1: bash {}",
        "check tests",
        "outcome",
    ]
    assert [d.about for d in differences(fewer, then)] == ["session 2 (r, agent a)"]
    assert [d.about for d in differences(then, fewer)] == ["session (r, agent a)"]


@pytest.mark.parametrize("status", ["cancelled", "errored", None])
def test_how_a_session_was_cut_off_is_not_compared(status: str | None) -> None:
    assert not differences(recorded(call("a"), status=status), recorded(call("a")))


def test_a_missing_call_is_a_difference() -> None:
    (found,) = differences(recorded(call("a"), call("b")), recorded(call("a")))

    assert "+(not called)" in found.lines


def test_a_long_diff_is_cut() -> None:
    many = "\n".join(map(str, range(1000)))
    text = as_text(differences(recorded(call(many)), recorded(call("none"))))

    assert len(text.splitlines()) < 250
    assert "more lines" in text


def test_an_accepted_replay_keeps_who_was_asked_and_takes_todays_answers() -> None:
    own = RecordedCall(
        model="replay/r.json",
        purpose="step",
        trouble=Trouble(kind="protocol", message="the recording ends here, after 1 replies"),
    )
    then, now = recorded(call("old")), recorded(call("new"))
    session = now.sessions[0]
    played = evolve(
        now,
        base="b" * 40,
        sessions=(evolve(session, calls=(*session.calls, own), status="failed"),),
    )
    new = renewed(then, played)

    assert new.base == "b" * 40
    assert new.sessions[0].status == "failed"
    assert new.sessions[0].calls == (
        RecordedCall(model="m/x", purpose="step", blocks=(call("new"),)),
    )


def test_names_are_learned_from_answers_and_put_into_replies() -> None:
    renames = Renames()
    renames.learn(f"in {TREE}\nsession: {SES}", f"in {OTHER_TREE}\nsession: {OTHER_SES}")
    renames.learn(f"{RUN} and {SES}", "something else entirely")

    said = renames.in_text(f'{{"file_path": "{TREE}/a.py", "session": "{SES}"}}')
    assert said == f'{{"file_path": "{OTHER_TREE}/a.py", "session": "{OTHER_SES}"}}'
    assert renames.in_text(f"{RUN} stays") == f"{RUN} stays"


def test_a_saved_recording_names_no_folder_of_this_machine() -> None:
    text = f'File \\"{TREE}/a.py\\", whole in /home/u/p/items/x/attempt-1/outputs/c'

    assert portable(text) == (
        f'File \\"/worktrees/{RUN}/{SES}-1/tree/a.py\\", whole in /attempt-1/outputs/c'
    )
    assert normal(portable(text)) == normal(text)


def test_what_the_model_says_is_not_compared() -> None:
    said = RecordedCall(model="m/x", purpose="step", blocks=(Said("now"),))
    then = recorded(call("a"))
    now = evolve(then.sessions[0], calls=(*then.sessions[0].calls, said))

    assert not differences(then, evolve(then, sessions=(now,)))
