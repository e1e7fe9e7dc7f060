"""Where a run keeps its files, and finding it again."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness_batch.errors import StorageError, UsageError
from harness_batch.events import Notice
from harness_batch.store.disk import write_bytes, write_text
from harness_batch.store.folder import RunFolder, harness_folder
from harness_batch.store.journal import Journal
from harness_batch.store.runs import find_run, find_session, list_runs
from store_events import RUN_ID

CLAIM = """
import sys
from pathlib import Path
from harness_batch.store.folder import RunFolder
with RunFolder(Path(sys.argv[1])).claimed():
    print("claimed", flush=True)
    sys.stdin.read()
"""


def begun(folder: RunFolder, run_id: str, session_id: str) -> RunFolder:
    folder.path.mkdir(parents=True)
    journal = Journal.open(folder.journal, run_id)
    journal.append(Notice("info", "hello"), session_id)
    journal.close()
    return folder


def test_harness_ignores_what_runs_leave_and_not_what_people_write(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    harness = harness_folder(tmp_path)
    for name in ("runs/r/events.jsonl", "history.duckdb", "history.duckdb.lock", "cache/x"):
        (harness / name).parent.mkdir(parents=True, exist_ok=True)
        (harness / name).touch()
    argv = ["git", "-C", str(tmp_path), "status", "--porcelain", "-uall"]
    assert subprocess.run(argv, check=True, capture_output=True).stdout == b""
    (harness / "agents").mkdir()
    (harness / "agents" / "mine.md").touch()
    assert subprocess.run(argv, check=True, capture_output=True).stdout.endswith(b"mine.md\n")
    (harness / ".gitignore").write_text("# my own\n")
    harness_folder(tmp_path)
    assert (harness / ".gitignore").read_text() == "# my own\n"


def test_harness_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / ".harness").write_text("in the way")
    with pytest.raises(StorageError, match=r"cannot make .*\.harness"):
        harness_folder(tmp_path)


def test_a_second_process_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", CLAIM, str(tmp_path / "run")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"claimed\n"
        with (
            pytest.raises(UsageError, match=f"process {child.pid}.* --out"),
            RunFolder(tmp_path / "run").claimed(),
        ):
            pass
        child.send_signal(signal.SIGKILL)
        child.wait(timeout=10)
        with RunFolder(tmp_path / "run").claimed():
            assert (tmp_path / "run" / "run.lock").read_text() == f"{os.getpid()}\n"


def test_a_claim_in_the_same_process_is_refused_too_and_ends_with_its_block(
    tmp_path: Path,
) -> None:
    folder = RunFolder(tmp_path / "run")
    with (
        folder.claimed(),
        pytest.raises(UsageError, match="another harness-batch"),
        folder.claimed(),
    ):
        pass
    with folder.claimed():
        pass


def test_a_stale_lock_of_a_dead_process_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "run.lock").write_text("999999999\n")
    with RunFolder(tmp_path).claimed():
        pass


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_text(path, "old é \ud800")
    assert path.read_bytes() == "old é ?".encode()
    write_bytes(path, b"\0new")
    assert path.read_bytes() == b"\0new"
    with pytest.raises(StorageError, match="cannot write"):
        write_bytes(tmp_path / "missing" / "a", b"")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match="cannot write"):
        write_bytes(tmp_path / "folder", b"")
    assert sorted(child.name for child in tmp_path.iterdir()) == ["a", "folder"]


def test_status_is_replaced(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_status({"done": 1, "name": "é\ud800"})
    folder.write_status({"done": 2})
    assert json.loads(folder.status.read_text()) == {"done": 2}


def test_an_attempts_folder_is_made_with_its_outputs(tmp_path: Path) -> None:
    attempt = RunFolder(tmp_path).attempt("fix_lint-1a2b3c4d", 1)
    assert attempt.path == tmp_path / "items" / "fix_lint-1a2b3c4d" / "attempt-1"
    assert attempt.outputs.is_dir()
    assert attempt.patch == attempt.path / "change.patch"
    for name in ("", "..", "a/b", "a\0b"):
        with pytest.raises(ValueError, match="is not the name of a folder"):
            RunFolder(tmp_path).attempt(name, 1)


def test_the_ballast_gives_room_back(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.hold_ballast()
    (ballast,) = tmp_path.iterdir()
    assert ballast.stat().st_blocks * 512 >= 1 << 20
    folder.drop_ballast()
    folder.drop_ballast()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_holds_a_run_takes_no_other(tmp_path: Path) -> None:
    fresh = RunFolder(tmp_path / "out")
    fresh.refuse_other_run()
    begun(fresh, RUN_ID, "ses_1")
    with pytest.raises(UsageError, match=f"holds {RUN_ID} already; .*--resume last"):
        fresh.refuse_other_run()


def test_runs_are_found_by_what_people_write(tmp_path: Path) -> None:
    harness = harness_folder(tmp_path)
    assert list_runs(harness) == ()
    with pytest.raises(UsageError, match=r"there is no run 'last' .*: none"):
        find_run("last", harness)
    old = begun(RunFolder.of(harness, "run_01A"), "run_01A", "ses_old")
    new = begun(RunFolder.of(harness, "run_01B"), "run_01B", "ses_new")
    (harness / "runs" / "run_01C").mkdir()
    elsewhere = begun(RunFolder(tmp_path / "out"), "run_01Z", "ses_far")
    assert list_runs(harness) == (new, old)
    assert find_run("last", harness) == new
    assert find_run("run_01A", harness) == old
    assert find_run("run_01B", harness) == new
    assert find_run(str(elsewhere.path), harness) == elsewhere
    assert find_run(str(elsewhere.journal), harness) == elsewhere
    assert elsewhere.run_id() == "run_01Z"
    with pytest.raises(UsageError, match="several runs begin with 'run_01'"):
        find_run("run_01", harness)
    with pytest.raises(UsageError, match=r"there is no run 'run_09' .*run_01B, run_01A"):
        find_run("run_09", harness)
    assert find_session("ses_old", harness) == old
    with pytest.raises(UsageError, match="there is no session 'ses_far'"):
        find_session("ses_far", harness)
