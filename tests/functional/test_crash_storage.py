"""Disks that are full, read-only or damaged, and databases that others hold: loud, never lossy."""

import duckdb

from crash_cli import Stage, bash, grow, says, small_disk, write
from harness_batch.app.finish import reported
from harness_batch.events import RunFinished
from harness_batch.store.folder import RunFolder


async def test_a_full_disk_ends_the_run_as_storage_and_keeps_what_was_acknowledged(
    stage: Stage,
) -> None:
    recipe = stage.recipe(matrix={"n": [1, 2, 3]})
    big = "x" * 60_000
    stage.script(
        *(says(big, write(f"f{n}.txt", f"{n}\n")) for n in range(40)),
        says("done"),
    )
    with small_disk(stage.out, "5m"):
        done = await stage.call(*stage.in_out(recipe, "-j", "1"))
        assert done.code == 3, done.err
        assert "Traceback" not in done.err
        assert "No space left on device" in done.err
        acknowledged = stage.events()
        assert "f4.txt" in str(acknowledged)
        (end,) = stage.payloads(RunFinished)
        assert end.run.exit_code == 3
        grow(stage.out, "64m")
        report = reported(RunFolder(stage.out))
        found = {session.item_key: (session.status, session.reason) for session in report.sessions}
        assert found == {
            "work/n=1": ("errored", "storage"),
            "work/n=2": ("skipped", "not_admitted"),
            "work/n=3": ("skipped", "not_admitted"),
        }
        stage.script(says("done"))
        again = await stage.call(*stage.in_out(recipe, "--resume", "last"))
        assert again.code == 0, again.err
        assert stage.counts() == {"passed": 3}


async def test_a_full_cache_errors_the_sessions_that_it_hits_and_says_so(stage: Stage) -> None:
    recipe = stage.recipe()
    stage.script(says("", bash("head -c 9000000 /dev/zero > big; true")), says("done"))
    cache = stage.home / ".cache"
    with small_disk(cache, "2m"):
        done = await stage.call(*stage.in_out(recipe))
        assert "Traceback" not in done.err
        assert done.code == 3, done.err
        status, reason, _ = stage.statuses()["work"]
        assert (status, reason) in {("errored", "host"), ("errored", "git")}
        assert stage.leftovers() == []


async def test_an_out_folder_that_cannot_be_written_is_one_clear_line(stage: Stage) -> None:
    recipe = stage.recipe()
    stage.script(says("done"))
    (stage.root / "file").write_text("")
    out = stage.root / "file" / "out"
    done = await stage.call("run", recipe, "--out", out)
    assert done.code in (2, 3)
    assert len(done.err.splitlines()) <= 2, done.err
    assert str(out) in done.err
    with small_disk(stage.out, "1m", "ro"):
        done = await stage.call(*stage.in_out(recipe))
        assert done.code == 3
        assert "Read-only file system" in done.err
        assert "Traceback" not in done.err


async def test_a_harness_file_in_the_way_is_one_clear_line(stage: Stage) -> None:
    (stage.repo / ".harness").write_text("mine\n")
    recipe = stage.recipe()
    stage.script(says("done"))
    done = await stage.call("run", recipe)
    assert done.code in (2, 3)
    assert ".harness" in done.err
    assert "Traceback" not in done.err
    assert (stage.repo / ".harness").read_text() == "mine\n"
    elsewhere = await stage.call(*stage.in_out(recipe, "--db", stage.root / "h.duckdb"))
    assert elsewhere.code == 0, elsewhere.err


async def test_a_history_that_cannot_be_written_costs_nothing_but_a_line(stage: Stage) -> None:
    recipe = stage.recipe()
    stage.script(says("done"))
    history = stage.root / "history.duckdb"
    history.write_bytes(b"not a database" * 1000)
    words = stage.in_out(recipe, "--db", history)
    done = await stage.call(*words, "--json")
    assert done.code == 0
    assert done.json()["exit_code"] == 0
    assert str(history) in done.err
    assert "the run is complete" in done.err
    assert history.read_bytes().startswith(b"not a database"), "nobody's file is thrown away"
    history.unlink()
    with duckdb.connect(str(history)) as held:
        held.execute("CREATE TABLE x (a INT)")
        again = await stage.call(*words, "--resume", "last")
        assert again.code == 0
        assert "the run is complete" in again.err


async def test_a_damaged_or_missing_database_is_made_again_from_the_journal(stage: Stage) -> None:
    recipe = stage.recipe()
    stage.script(says("", bash("echo hi")), says("done"))
    assert (await stage.call(*stage.in_out(recipe))).code == 0
    database = stage.out / "run.duckdb"
    whole = database.read_bytes()
    first = (stage.out / "junit.xml").read_bytes()
    for damaged in (None, b"", whole[: len(whole) // 2]):
        database.unlink()
        if damaged is not None:
            database.write_bytes(damaged)
        assert reported(RunFolder(stage.out)).run.exit_code == 0
        stage.database_is_the_journal()
    database.write_bytes(whole[:5000] + b"\xff" * 9000)
    report = await stage.call("report", stage.out, "--format", "junit")
    assert report.code == 0, report.err
    assert report.out.encode() == first, "byte for byte"
    stage.database_is_the_journal()
