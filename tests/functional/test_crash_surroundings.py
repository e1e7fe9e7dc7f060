"""Odd places and odd ends of pipes: a run starts at once, works, and never shows a traceback."""

import os
import subprocess
from pathlib import Path

import pytest
import trio

from crash_cli import Stage, bash, commit, says, small_disk, stage_at, write


async def test_no_home_and_no_cache_folder(stage: Stage) -> None:
    recipe = stage.recipe()
    stage.script(says("", write("new.txt", "new\n"), bash("echo $HOME")), says("done"))
    done = await stage.call(*stage.in_out(recipe), HOME=None)
    assert done.code == 0, done.err
    assert "+new\n" in stage.patch("work")
    assert not list(stage.tmp.glob("harness-batch-*/harness-batch/worktrees/*/*"))


async def test_a_home_that_cannot_be_written(stage: Stage) -> None:
    recipe = stage.recipe()
    stage.script(says("", write("new.txt", "new\n")), says("done"))
    with small_disk(stage.home, "1m", "ro"):
        done = await stage.call(*stage.in_out(recipe))
    assert done.code == 0, done.err
    assert "+new\n" in stage.patch("work")
    assert list(stage.home.iterdir()) == []


async def test_paths_with_blanks_letters_of_all_kinds_quotes_and_newlines(tmp_path: Path) -> None:
    stage = stage_at(tmp_path / "a b" / "ünï—コード" / "new\nline" / 'it\'s "q" $(x) %s')
    (stage.repo / "wéird\nname.txt").write_text("x\n")
    commit(stage.repo)
    recipe = stage.recipe("work")
    odd = recipe.rename(recipe.with_name("re ci\npé.yaml"))
    stage.script(says("", write("new.txt", "new\n"), bash("ls | wc -l")), says("done"))
    before = stage.checkout()
    done = await stage.call("run", odd, "--json")
    assert done.code == 0, done.err
    (session,) = done.json()["sessions"]
    assert session["status"] == "passed"
    show = await stage.call("show", session["session_id"])
    assert show.code == 0
    apply = await stage.call("apply", session["session_id"])
    assert apply.code == 0, apply.err
    assert (stage.repo / "new.txt").read_text() == "new\n"
    (stage.repo / "new.txt").unlink()
    assert stage.checkout() == before


async def test_stdin_is_a_pipe_that_nobody_closes(stage: Stage) -> None:
    recipe = stage.recipe()
    stage.script(says("", bash("cat; echo read")), says("done"))
    reading, writing = os.pipe()
    try:
        with trio.fail_after(30):
            done = await trio.run_process(
                stage.argv(*stage.in_out(recipe)), stdin=reading, cwd=stage.repo,
                env=stage.environ(), capture_stdout=True, capture_stderr=True, check=False,
            )  # fmt: skip
    finally:
        os.close(reading)
        os.close(writing)
    assert done.returncode == 0
    assert stage.ask("SELECT exit_code FROM tool_call") == [(0,)]


@pytest.mark.parametrize(
    ("outlets", "code", "said"),
    [
        (">&- 2>&- <&-", 0, None),
        ("| exec true", 0, ""),
        (">/dev/full", 3, "cannot write to stdout: No space left on device"),
        ("2>&1 | exec true", 0, None),
    ],
)
async def test_streams_that_go_away_do_not_change_what_a_run_does(
    stage: Stage, outlets: str, code: int, said: str | None
) -> None:
    """`| exec true`: bash's own exit code of the left side."""
    recipe = stage.recipe()
    stage.script(says("done"))
    words = stage.argv("run", recipe, "--out", stage.out, "--db", stage.root / "h.duckdb")
    script = f'"$@" {outlets}; exit ${{PIPESTATUS[0]}}'
    done = await trio.run_process(
        ["bash", "-c", script, "x", *words], cwd=stage.repo, env=stage.environ(NO_COLOR="1"),
        capture_stderr=True, capture_stdout=True, check=False,
    )  # fmt: skip
    err = done.stderr.decode()
    assert done.returncode == code, err
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    if said is not None:
        assert said in err
    assert stage.statuses() == {"work": ("passed", None, 1)}
    assert (stage.out / "junit.xml").stat().st_size > 0


async def test_no_colour_without_a_terminal_or_with_no_color(stage: Stage) -> None:
    recipe = stage.recipe()
    stage.script(says("done"))
    plain = await stage.call(*stage.in_out(recipe))
    assert plain.code == 0
    assert "\x1b" not in plain.out + plain.err
    words = [*stage.argv(*stage.in_out(recipe, "--resume", "last"))]
    command = " ".join(f"'{word}'" for word in words)
    terminal = await trio.run_process(
        ["script", "-qec", command, "/dev/null"], cwd=stage.repo, stdin=subprocess.DEVNULL,
        env=stage.environ(NO_COLOR="1", TERM="xterm"), capture_stdout=True, check=False,
    )  # fmt: skip
    assert terminal.returncode == 0
    assert b"\x1b[3" not in terminal.stdout


async def test_a_report_beside_a_running_run_leaves_its_database_alone(stage: Stage) -> None:
    recipe = stage.recipe(matrix={"n": [1, 2]})
    stage.script(says("", bash(stage.sleeper())), says("done"))
    async with stage.running(*stage.in_out(recipe, "-j", "1")) as run:
        await stage.something_lives()
        theirs = (stage.out / "run.duckdb").stat().st_ino
        report = await stage.call("report", stage.out, "--format", "json")
        assert report.code == 0, report.err
        assert [s["item_key"] for s in report.json()["sessions"]] == ["work/n=1"]
        assert (stage.out / "run.duckdb").stat().st_ino == theirs
        run.terminate()
        assert await run.wait() == 143
    assert sorted(path.name for path in stage.out.glob("*.duckdb*")) == ["run.duckdb"]
    assert stage.counts() == {"cancelled": 1, "skipped": 1}
    stage.database_is_the_journal()
