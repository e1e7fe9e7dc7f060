"""Many sessions at once, runs beside runs, and hostile sessions beside a decent one."""

from collections import Counter
from pathlib import Path

import duckdb
import trio

from crash_cli import Done, Stage, bash, commit, says, write

FIFTY = 50


async def test_fifty_sessions_on_one_repository_keep_to_themselves(stage: Stage) -> None:
    for n in range(FIFTY):
        (stage.repo / f"f{n}.txt").write_text(f"file {n}\n")
    commit(stage.repo)
    recipe = stage.recipe(
        matrix={"n": list(range(FIFTY))},
        prompt="Item <{{ n }}>.",
        workspace={"setup": ["echo {{ n }} > item"]},
        expect={"patch": "required", "max_files": 2},
    )
    stage.script(
        says("", bash('n=$(cat item); echo "changed $n" > f$n.txt; echo "seen $n"')), says("done")
    )
    before = stage.checkout()
    history = stage.root / "history.duckdb"
    done = await stage.call(*stage.in_out(recipe, "-j", "16", "--db", history))
    assert done.code == 0, done.err
    assert stage.counts() == {"passed": FIFTY}
    for n in range(FIFTY):
        (attempt,) = (stage.out / "items").glob(f"work_n={n}-*/attempt-1")
        patch = (attempt / "change.patch").read_text()
        assert f"+changed {n}\n" in patch
        touched = [line for line in patch.splitlines() if line.startswith("diff --git")]
        assert touched == [f"diff --git a/{name} b/{name}" for name in (f"f{n}.txt", "item")]
        said = (attempt / "transcript.md").read_text()
        assert f"seen {n}\n" in said
        assert said.count("Item <") == 1
        assert f"Item <{n}>" in said
    assert stage.leftovers() == []
    assert stage.checkout() == before
    assert runs_in(history) == {FIFTY: 1}
    stage.database_is_the_journal()


async def test_runs_beside_each_other_in_one_repository_share_one_history(stage: Stage) -> None:
    recipe = stage.recipe(matrix={"n": [1, 2]})
    stage.script(says("", write("new.txt", "new\n"), bash("sleep 0.2")), says("done"))
    before = stage.checkout()
    results: list[Done] = []

    async def one() -> None:
        results.append(await stage.call("run", recipe, "--json"))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(one)
    assert [done.code for done in results] == [0, 0, 0], [done.err for done in results]
    assert len({done.json()["run_id"] for done in results}) == 3
    assert runs_in(stage.repo / ".harness" / "history.duckdb") == {2: 3}
    assert stage.leftovers() == []
    assert stage.checkout() == before


FSMONITOR = "[core]\\n\\tfsmonitor = touch pwned\\n"
HOSTILE = {
    "flood": bash("yes", timeout=1),
    "line": bash("head -c 30000000 /dev/zero | tr '\\0' x"),
    "bytes": bash("head -c 2000000 /dev/urandom; printf '\\033]0;x\\007\\r::error::y\\n'"),
    "forks": bash(
        "for i in $(seq 60); do (setsid sleep 60 &) & done; f() { f & }; ulimit -u 300; f; wait",
        timeout=2,
    ),
    "homeless": bash(
        'python3 -c "import os, shutil; shutil.rmtree(os.path.dirname(os.getcwd()), True)"'
    ),
    "gitless": bash(
        "rm -rf .git; git init -q .; "
        f"""python3 -c "open('.gi' + 't/config', 'a').write('{FSMONITOR}')"; """
        "echo evil > a.txt; git add -A; git -c user.name=e -c user.email=e commit -qm e; "
        "rm -f pwned"
    ),
    "closed": bash('chmod 000 . docs a.txt "$TMPDIR" "$HOME"'),
    "full": bash("head -c 200000000 /dev/zero > big; sync big"),
}


async def test_seven_hostile_sessions_do_not_touch_the_eighth(stage: Stage) -> None:
    recipes = [stage.recipe(name, limits={"seconds": 60}) for name in HOSTILE]
    for name, call in HOSTILE.items():
        stage.script(says("", call), says("done"), name=name)
    decent = stage.recipe("decent", expect={"patch": "required"})
    stage.script(
        says("", write("new.txt", "new\n"), bash("cat a.txt")), says("done"), name="decent"
    )
    before = stage.checkout()
    done = await stage.call(*stage.in_out(*recipes, decent, "-j", "9"))
    assert "Traceback" not in done.err
    statuses = stage.statuses()
    assert statuses["decent"] == ("passed", None, 1), done.err
    assert "+new\n" in stage.patch("decent")
    assert len(statuses) == len(HOSTILE) + 1
    assert {status for status, _, _ in statuses.values()} <= {"passed", "failed", "errored"}
    assert not [reason for _, reason, _ in statuses.values() if reason in ("internal", "storage")]
    assert done.code in (0, 1, 3)
    size = sum(path.stat().st_size for path in stage.out.rglob("*") if path.is_file())
    assert size < 200e6, "a flood is cut where it is written down"
    assert "+evil" in stage.patch("gitless")
    assert "pwned" not in stage.patch("gitless"), "git never ran the agent's program"
    assert stage.leftovers() == []
    assert stage.checkout() == before
    stage.database_is_the_journal()


def runs_in(history: Path) -> Counter[int]:
    """How many runs have how many sessions."""
    with duckdb.connect(str(history), read_only=True) as database:
        rows = database.execute(
            "SELECT count(*) FROM session JOIN run USING (run_id) GROUP BY run_id"
        ).fetchall()
    return Counter(number for (number,) in rows)
