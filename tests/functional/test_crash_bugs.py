"""Bugs of ours: one session's stays its own, the run's is one line and a traceback in a file."""

import sys
from pathlib import Path

import trio

from crash_cli import Done, Stage, bash, says, write

TOOL = """
import harness_batch.tools.write as room

async def broken(self, arguments, context, call_id):
    if arguments["content"] == "bug":
        raise KeyError("nobody thought of this")
    return await right(self, arguments, context, call_id)

(kind,) = [k for k in vars(room).values() if isinstance(k, type) and "run" in vars(k)
           and k.__module__ == room.__name__]
right, kind.run = kind.run, broken
"""
SANDBOX = TOOL.replace(
    'KeyError("nobody thought of this")',
    '__import__("harness_batch.errors").errors.SandboxError("the sandbox broke")',
)
DISPLAY = """
import harness_batch.cli.progress as room

def broken(self, event):
    raise ZeroDivisionError("in the display")

room.PlainDisplay.take = broken
"""
REPORT = """
import harness_batch_reports.junit as room

def broken(*arguments):
    raise ZeroDivisionError("in the report")

room.render = broken
"""


async def driven(stage: Stage, patch: str, *words: str | Path) -> Done:
    """The command line with something of it replaced."""
    driver = stage.root / "driver.py"
    driver.write_text(f"{patch}\nfrom harness_batch.cli.main import main\nmain()\n")
    done = await trio.run_process(
        [sys.executable, str(driver), *map(str, words)], cwd=stage.repo, env=stage.environ(),
        capture_stdout=True, capture_stderr=True, check=False,
    )  # fmt: skip
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode(), 0.0)


async def test_a_bug_in_one_session_is_that_sessions(stage: Stage) -> None:
    recipes = [stage.recipe(name) for name in ("bug", "good")]
    stage.script(says("", write("a.txt", "right"), write("new.txt", "bug")), name="bug")
    stage.script(says("", write("new.txt", "new\n")), says("done"), name="good")
    done = await driven(stage, TOOL, *stage.in_out(*recipes))
    assert done.code == 3
    assert "Traceback" not in done.err
    assert stage.statuses() == {"bug": ("errored", "internal", 1), "good": ("passed", None, 1)}
    trace = (stage.folder("bug") / "attempt-1" / "traceback.txt").read_text()
    assert "nobody thought of this" in trace
    ((detail, kind),) = stage.ask("SELECT detail, error_kind FROM attempt WHERE status = 'errored'")
    assert "KeyError" in detail
    assert "ExceptionGroup" not in detail
    assert kind == "infra"
    assert stage.ask("SELECT count(*) FROM tool_call WHERE status IS NULL") == [(0,)]
    stage.database_is_the_journal()


async def test_an_error_out_of_a_nursery_keeps_its_kind(stage: Stage) -> None:
    recipe = stage.recipe()
    stage.script(says("", write("new.txt", "bug")), says("done"))
    done = await driven(stage, SANDBOX, *stage.in_out(recipe))
    assert done.code == 3
    assert stage.statuses() == {"work": ("errored", "sandbox", 1)}
    assert "Group" not in done.err


async def test_a_bug_of_the_run_is_one_line_and_a_traceback_in_its_folder(stage: Stage) -> None:
    recipe = stage.recipe(matrix={"n": [1, 2]})
    stage.script(says("", bash(stage.sleeper())), says("done"))
    done = await driven(stage, DISPLAY, *stage.in_out(recipe, "-j", "1"))
    assert done.code == 3
    assert len(done.err.splitlines()) == 1, done.err
    assert "a bug in harness-batch" in done.err
    assert "ZeroDivisionError: in the display" in done.err
    assert "in the display" in (stage.out / "traceback.txt").read_text()
    assert {status for status, _, _ in stage.statuses().values()} <= {"errored", "skipped"}
    assert (stage.out / "junit.xml").exists()
    await stage.nothing_survives()
    again = await stage.call(*stage.in_out(recipe, "--resume", "last", "--limit", "seconds=1"))
    assert again.code == 1, again.err


async def test_a_bug_in_a_report_loses_nothing(stage: Stage) -> None:
    recipe = stage.recipe()
    stage.script(says("done"))
    done = await driven(stage, REPORT, *stage.in_out(recipe))
    assert done.code == 3
    assert "ZeroDivisionError: in the report" in done.err
    assert "Traceback" not in done.err
    again = await stage.call(*stage.in_out(recipe, "--resume", "last"))
    assert again.code == 0
    assert stage.statuses() == {"work": ("passed", None, 1)}


async def test_a_bug_of_another_command_is_one_line_too(stage: Stage) -> None:
    recipe = stage.recipe()
    broken = "import harness_batch.app.prepare as room\nroom.prepare = lambda *given: 1 / 0\n"
    done = await driven(stage, broken, "validate", recipe)
    assert done.code == 3
    assert len(done.err.splitlines()) == 1
    (trace,) = stage.tmp.glob("harness-batch-traceback-*.txt")
    assert str(trace) in done.err
    assert "ZeroDivisionError" in trace.read_text()
