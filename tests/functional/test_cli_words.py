"""What a newcomer reads: help, mistakes on the command line, and what to do next."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness_batch.cli.main import COMMANDS


def harness_batch(cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness_batch", *words],
        cwd=cwd, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sample repository and one run in `out/`."""
    home = tmp_path_factory.mktemp("newcomer")
    assert harness_batch(home, "init", "--sample", "sample").returncode == 0
    done = harness_batch(home, "run", "fix-failing-test", "--repo", "sample", "--out", "out")
    assert done.returncode == 0
    (home / "screen.txt").write_text(done.stdout)
    (home / "log.txt").write_text(done.stderr)
    return home


def test_help_lists_every_command_and_the_first_steps(tmp_path: Path) -> None:
    said = harness_batch(tmp_path, "--help").stdout
    for name, words in COMMANDS.items():
        assert f"  {name}" in said
        assert words in " ".join(said.split())
    assert "  harness-batch init --sample sample\n" in said


def test_a_misspelt_command_is_told_from_a_recipe(tmp_path: Path) -> None:
    done = harness_batch(tmp_path, "schemma")
    assert done.returncode == 2
    assert "no command or recipe `schemma`; did you mean `schema`?" in done.stderr


def test_a_recipe_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    done = harness_batch(tmp_path, "run", "recipes/mine.yaml")
    assert done.returncode == 2
    assert "fix-failing-test, nightly-refactor, review-pr" in done.stderr


@pytest.mark.parametrize("words", [("--repo", "nowhere"), ("--repo", ".", "--ref", "nothing")])
def test_a_repository_that_is_not_there_is_the_users_mistake(
    ran: Path, words: tuple[str, ...]
) -> None:
    done = harness_batch(ran, "run", "fix-failing-test", *words)
    assert done.returncode == 2
    assert done.stderr.startswith("harness-batch: ")
    assert done.stdout == ""


def test_a_bound_on_money_needs_a_price(ran: Path) -> None:
    gateway = {"type": "openai-chat", "base_url": "http://127.0.0.1:9/v1"}
    (ran / "gateway.json").write_text(json.dumps({"provider": {"gateway": gateway}}))
    words = ("run", "fix-failing-test", "--repo", "sample", "--config", "gateway.json")
    done = harness_batch(ran, *words, "-m", "gateway/any", "--max-cost", "1")
    assert done.returncode == 2
    assert "--max-cost needs the prices of gateway/any" in done.stderr


def test_a_misspelt_model_of_a_known_provider_is_told_before_anything_runs(ran: Path) -> None:
    words = ("validate", "fix-failing-test", "--repo", "sample", "-m", "anthropic/claude-sonet-5")
    done = harness_batch(ran, *words)
    assert done.returncode == 2
    assert "did you mean `claude-sonnet-5`?" in done.stderr


def test_a_run_that_nothing_contains_says_so_in_one_short_line(ran: Path) -> None:
    told = (ran / "log.txt").read_text().splitlines()
    warnings = [line for line in told if "sandbox" in line]
    mechanism = json.loads((ran / "out" / "result.json").read_text())["sandbox"]["mechanism"]
    assert len(warnings) == (mechanism != "bubblewrap")
    assert all(len(line) <= 150 and "harness-batch doctor" in line for line in warnings)


def test_the_screen_says_how_to_apply_the_patch_and_that_works(ran: Path) -> None:
    screen = (ran / "screen.txt").read_text()
    (line,) = (text for text in screen.splitlines() if "harness-batch apply" in text)
    words = line.partition("harness-batch ")[2].split()
    assert words[2:] == ["--run", "out", "--repo", "sample"]
    done = harness_batch(ran, *words)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "invoice/money.py")
    again = harness_batch(ran, *words)
    assert again.returncode == 0
    assert "has this change already" in again.stdout


def test_the_answer_is_shown_whole_not_cut(ran: Path) -> None:
    screen = " ".join((ran / "screen.txt").read_text().split())
    assert "All tests pass; no test was changed." in screen


def test_a_missing_key_is_named_on_the_screen(ran: Path) -> None:
    words = ("run", "fix-failing-test", "--repo", "sample", "-m", "mine/m", "--config", "c.jsonc")
    (ran / "c.jsonc").write_text(
        '{"provider": {"mine": {"type": "openai-chat", "base_url": "http://127.0.0.1:9/v1"}},'
        ' "limits": {"seconds": 1}}'
    )
    done = harness_batch(ran, *words)
    assert done.returncode == 3
    assert "cannot connect to 127.0.0.1:9: Connection refused" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--limit", "steps=many"), "--limit steps=many: 'many' is not a whole number"),
        (
            ("--deny", "webftech"),
            "--deny webftech: `webftech` is no permission; did you mean `webf",
        ),
        (("-p", "a=1", "-p", "b=2"), "-p b: no recipe declares it"),
        (("-m", "claude-sonnet-5"), "did you mean `anthropic/claude-sonnet-5`?"),
        (("--allow", "Bash(git diff:*)"), "a rule is PERMISSION:PATTERN, `bash:git diff *` for"),
    ],
    ids=str,
)
def test_a_wrong_value_is_named_with_its_option(
    ran: Path, words: tuple[str, ...], told: str
) -> None:
    done = harness_batch(ran, "plan", "fix-failing-test", "--repo", "sample", *words)
    assert done.returncode == 2
    assert told in done.stderr


def test_a_misspelt_bundled_recipe_is_recognised(tmp_path: Path) -> None:
    assert "did you mean `review-pr`?" in harness_batch(tmp_path, "run", "reviwe-pr").stderr
    assert "it is no file" in harness_batch(tmp_path, "run", str(tmp_path)).stderr


def test_a_prompt_on_the_command_line_is_told_where_prompts_stand(tmp_path: Path) -> None:
    done = harness_batch(tmp_path, "Mend the failing test")
    assert done.returncode == 2
    assert "a task is written into a recipe" in done.stderr


def test_a_format_that_is_not_there_is_answered_with_those_there_are(ran: Path) -> None:
    done = harness_batch(ran, "report", "out", "--format", "pdf")
    assert done.returncode == 2
    assert "there are junit, markdown, html, json" in done.stderr


def test_what_init_says_comes_next_can_be_typed(ran: Path) -> None:
    said = harness_batch(ran, "init", "--recipe", "first.yaml").stdout
    lines = [line.split() for line in said.splitlines() if line.startswith("  harness-batch")]
    assert [words[1] for words in lines] == ["validate", "plan", "run"]
    model = ["-m", "anthropic/claude-sonnet-5", "--repo", "sample"]
    for words in lines[:2]:
        assert words[-2:] == ["-m", "PROVIDER/MODEL"]
        assert harness_batch(ran, *words[1:-2], *model).returncode == 0


def test_a_missing_key_is_told_by_its_variable_and_to_be_mended_first(ran: Path) -> None:
    words = ("run", "fix-failing-test", "--repo", "sample", "-m", "mine/m", "--config", "k.jsonc")
    (ran / "k.jsonc").write_text(
        '{"provider": {"mine": {"type": "openai-chat", "base_url": "https://api.openai.com/v1",'
        ' "api_key": "{env:NO_SUCH_KEY}"}}}'
    )
    done = harness_batch(ran, *words)
    assert done.returncode == 3
    said = " ".join(done.stdout.split())
    assert "key is missing or was refused" in said
    assert "set NO_SUCH_KEY" in said
    assert "mend the cause, then run 1 errored session again" in said
    asked = ("query", "SELECT count(*) FROM model_call", "--run", "last", "--format", "csv")
    assert harness_batch(ran, *asked).stdout.split() == ["count_star()", "0"], "nothing was sent"


def test_the_summary_too_says_which_checkout_a_patch_is_for(tmp_path: Path) -> None:
    assert harness_batch(tmp_path, "init", "--sample", "sample").returncode == 0
    words = ("run", "fix-failing-test", "--repo", "sample", "--allow", "bsh*:ls")
    assert harness_batch(tmp_path, *words).returncode == 2
    done = harness_batch(tmp_path, *words[:-1], "bash:python -c *")
    assert done.returncode == 0
    (folder,) = (tmp_path / ".harness" / "runs").iterdir()
    summary = (folder / "summary.md").read_text()
    assert "--repo sample`" in summary
    assert "warning: `" not in summary  # the severity is said once
    transcript = next(folder.glob("items/*/attempt-1/transcript.md")).read_text()
    assert str(Path(sys.prefix)) not in transcript  # the script's folder is nobody's business
    listed = harness_batch(tmp_path, "runs").stdout
    assert listed.rstrip().endswith("exit 0  1 passed  fix-failing-test")


@pytest.mark.parametrize("sql", ["", " ; ", "-- nothing"])
def test_a_query_without_sql_is_the_users_mistake(ran: Path, sql: str) -> None:
    done = harness_batch(ran, "query", "--run", "out", "--", sql)
    assert done.returncode == 2
    assert "there is no SQL in the query" in done.stderr


@pytest.mark.parametrize("form", ["table", "csv", "markdown"])
def test_a_column_that_data_named_is_inert(ran: Path, form: str) -> None:
    sql = "PIVOT (SELECT chr(27) || '[31m|' || chr(10) || '::error::x' AS name) ON name"
    said = harness_batch(ran, "query", "--run", "out", "--format", form, sql).stdout
    assert "\x1b" not in said
    assert not any(line.startswith("::") for line in said.splitlines())


def test_json_of_a_query_is_json(ran: Path) -> None:
    sql = "SELECT 'nan'::DOUBLE AS a, ['-inf'::DOUBLE, 1.5] AS b, {'c': 'inf'::FLOAT} AS d"
    said = harness_batch(ran, "query", "--run", "out", "--format", "json", sql).stdout

    def refused(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    answer = json.loads(said, parse_constant=refused)
    assert answer == [{"a": None, "b": [None, 1.5], "d": {"c": None}}]


@pytest.mark.parametrize("kind", ["device", "endless list"])
def test_a_list_of_repositories_that_is_no_file_is_the_users_mistake(ran: Path, kind: str) -> None:
    file = Path("/dev/zero") if kind == "device" else ran / "endless.txt"
    if kind == "endless list":
        file.write_text("sample\n" * 200_000)
    done = harness_batch(ran, "run", "fix-failing-test", "--repo", f"@{file}")
    assert done.returncode == 2
    assert str(file) in done.stderr


HOSTILE = """
- calls:
    - name: write
      arguments: {file_path: "n\\n::error::x\\e[31m.txt", content: a}
    - {name: bash, arguments: {command: "%s"}}
- text: done
"""


def hostile(home: Path, command: str) -> None:
    """A run in `out` whose patch has an odd name, and whatever the command makes."""
    assert harness_batch(home, "init", "--sample", "sample").returncode == 0
    recipe: dict[str, object] = {"name": "odd", "model": "scripted/s.yaml", "prompt": "go"}
    recipe |= {"permissions": {"edit": "allow", "bash": {"*": "allow"}}}
    (home / "r.json").write_text(json.dumps(recipe))
    (home / "s.yaml").write_text(HOSTILE % command)
    harness_batch(home, "run", "r.json", "--repo", "sample", "--out", "out")


def test_names_that_an_agent_chose_are_inert_when_they_are_applied(tmp_path: Path) -> None:
    hostile(tmp_path, "true")
    done = harness_batch(tmp_path, "apply", "odd", "--run", "out", "--repo", "sample")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert not any(line.startswith("::") for line in done.stdout.splitlines())


def test_a_patch_that_the_rules_refuse_is_not_applied(tmp_path: Path) -> None:
    hostile(tmp_path, "ln -s /etc/hostname link")
    done = harness_batch(tmp_path, "apply", "odd", "--run", "out", "--repo", "sample")
    assert done.returncode == 2
    assert "the patch rules refuse this patch: link" in done.stderr
    assert "change.patch" in done.stderr
    assert not (tmp_path / "sample" / "link").is_symlink()


def test_a_copy_of_a_report_takes_no_device_away_and_follows_links(tmp_path: Path) -> None:
    assert harness_batch(tmp_path, "init", "--sample", "sample").returncode == 0
    pipe, link = tmp_path / "pipe", tmp_path / "link.xml"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR)  # so that writing neither waits nor fails
    link.symlink_to("real.xml")
    words = ("run", "fix-failing-test", "--repo", "sample")
    done = harness_batch(tmp_path, *words, "--junit", str(link), "--summary", str(pipe))
    assert done.returncode == 0, done.stderr
    assert pipe.is_fifo()
    assert b"harness-batch" in os.read(reader, 65536)
    os.close(reader)
    assert link.is_symlink()
    assert (tmp_path / "real.xml").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("report", "out", "--format", "junit", "--out", "log.txt"), 3),
        (("report", "out", "--format", "junit,json", "--out", "log.txt/below"), 3),
        (("report", "out", "--format", ","), 2),
        (("init", "--recipe", "log.txt/r.yaml"), 2),
        (("init", "--sample", "log.txt"), 2),
        (("init", "--sample", "log.txt/below"), 2),
    ],
)
def test_a_place_that_cannot_be_written_is_no_bug(
    ran: Path, words: tuple[str, ...], code: int
) -> None:
    done = harness_batch(ran, *words)
    assert done.returncode == code
    assert len(done.stderr.splitlines()) == 1
    assert "a bug" not in done.stderr
