"""The guide says what the program does: keys, options, tables, reasons, rules, dependencies."""

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import duckdb
import pytest

from harness_batch.cli.main import COMMANDS
from harness_batch.config.door import load_config
from harness_batch.errors import FaultyInput
from harness_batch.models.recording_file import read_recording
from harness_batch.models.script_file import read_script
from harness_batch.permissions.defaults import DEFAULT_RULES
from harness_batch.permissions.judge import Allowed, Policy
from harness_batch.permissions.paths import path_asks
from harness_batch.permissions.shell import ShellPlace, asks_of
from harness_batch.permissions.web_url import parse_url
from harness_batch.recipe.door import open_recipe
from harness_batch.recipe.schema import recipe_schema
from harness_batch.recipe.yaml_text import read_yaml
from harness_batch.rules import Ask, rules_from
from harness_batch.store.database import upgrade
from harness_batch_reports.reasons import documented
from markdown_blocks import DOCS, PAGES, ROOT, Block, blocks, commands, names, section, tables

STORE = ROOT / "runner/harness_batch/store"

pytestmark = pytest.mark.skipif(not STORE.is_dir(), reason="the sources are not beside the tests")


def first_cells(text: str) -> set[str]:
    """What stands between backticks in the first column of all tables."""
    return {
        name for rows in tables(text) for row in rows[1:] for name in names(row[0])
    }  # fmt: skip


# ---- recipes


def test_the_guide_has_every_key_of_a_recipe() -> None:
    schema = recipe_schema()
    there = {name for key in schema["properties"] for name in _keys(key, schema, schema)}
    assert first_cells((DOCS / "recipes.md").read_text("utf-8")) == there


def _keys(key: str, parent: dict[str, Any], schema: dict[str, Any]) -> Iterator[str]:
    part = _resolved(parent["properties"][key], schema)
    yield key
    yield from (f"{key}{rest}" for rest in _below(part, schema))


def _below(part: dict[str, Any], schema: dict[str, Any]) -> Iterator[str]:
    for key in part.get("properties", {}):
        yield from (f".{name}" for name in _keys(key, part, schema))
    if isinstance(items := part.get("items"), dict):
        yield from (f"[]{rest}" for rest in _below(_resolved(items, schema), schema))
    if isinstance(more := part.get("additionalProperties"), dict):
        for branch in more.get("anyOf", [more]):
            yield from (f".NAME{rest}" for rest in _below(_resolved(branch, schema), schema))


def _resolved(part: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in part:
        return part
    target: dict[str, Any] = schema["$defs"][part["$ref"].rpartition("/")[2]]
    return _resolved({**target, **part, "$ref": target["$ref"]}, schema) if "$ref" in target else {
        **target, **{k: v for k, v in part.items() if k != "$ref"},
    }  # fmt: skip


YAML = [block for page in (*PAGES, ROOT / "SECURITY.md") for block in blocks(page, "yaml")]
FOREIGN = re.compile(r"^# (\.github/\S+|\.gitlab-ci\.yml|azure-pipelines\.yml)$", re.MULTILINE)


@pytest.mark.parametrize("block", YAML, ids=str)
def test_yaml_in_the_guide_is_what_it_says(block: Block, tmp_path: Path) -> None:
    """A whole recipe, a part of one, a script of a model, or a CI system's own file."""
    file = tmp_path / "recipe.yaml"
    text = block.text
    if FOREIGN.match(text):
        assert read_yaml(text, file).value
        return
    if text.startswith("# fix-script.yaml"):
        file.write_text(text)
        assert len(read_script(file)) == 3
        return
    whole = re.search(r"^(prompt|instructions):", text, re.MULTILINE)
    file.write_text(text if whole else f"prompt: Do it.\n{text}")
    (tmp_path / "extra.csv").write_text("package,python\ndocs,3.12\n")
    assert open_recipe(file).warnings == ()


# ---- configuration


REPLAY = DOCS / "replay.md"


def test_the_recording_in_the_guide_is_one(tmp_path: Path) -> None:
    (block,) = blocks(REPLAY, "json")
    file = tmp_path / "recording.json"
    file.write_text(block.text)
    assert len(read_recording(file).sessions[0].calls) == 2


@pytest.mark.parametrize(
    "block",
    [block for page in PAGES if page != REPLAY for block in blocks(page, "jsonc", "json")],
    ids=str,
)
def test_configuration_in_the_guide_is_accepted(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "config.jsonc"
    file.write_text(block.text)
    environ = {
        "HOME": str(tmp_path),
        **dict.fromkeys(re.findall(r"\{env:(\w+)\}", block.text), "k"),
        "OPENAI_BASE_URL": "http://127.0.0.1:1/v1",
        "OPENAI_API_KEY": "k",
    }
    config = load_config(repo=None, explicit=file, environ=environ)
    assert set(re.findall(r'^    "([\w-]+)": \{', block.text, re.MULTILINE)) & set(config.providers)
    assert config.warnings == ()


# ---- the command line


def options(command: str) -> set[str]:
    found: click.Command = import_module(f"harness_batch.cli.{command}").command
    below = found.commands.values() if isinstance(found, click.Group) else ()
    return {
        name
        for one in (found, *below)
        for option in one.params
        if isinstance(option, click.Option) and not option.hidden
        for name in option.opts
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_the_guide_has_every_option_of_a_command(command: str) -> None:
    assert first_cells(section(DOCS / "cli.md", f"## {command}")) == options(command)


def test_the_guide_has_every_command() -> None:
    heads = re.findall(r"^## (\w+)$", (DOCS / "cli.md").read_text("utf-8"), re.MULTILINE)
    assert heads == list(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_says_what_it_does(command: str) -> None:
    found: click.Command = import_module(f"harness_batch.cli.{command}").command
    assert found.help
    for option in found.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert option.help, option.name


def _said() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for line in commands(page):
            yield page.name, line
        for block in blocks(page, "yaml", "groovy"):
            joined = re.sub(r"\s*\\\n\s*|\n\s+(?=--)", " ", block.text)
            for found in re.finditer(
                r"(?<![\w/@])harness-batch (?=[a-z]).+$", joined, re.MULTILINE
            ):
                yield page.name, found[0]


@pytest.mark.parametrize(("page", "line"), list(_said()))
def test_a_command_in_the_guide_is_one(
    page: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It parses: commands and options exist. What it does is tested elsewhere."""
    (tmp_path / "models.jsonc").write_text("{}")
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line.replace('"git+', "").rpartition("harness-batch ")[2])
    if "harness-batch " not in line or not words:
        return
    name = words.pop(0) if words[0] in COMMANDS else "run"
    command: click.Command = import_module(f"harness_batch.cli.{name}").command
    command.make_context(name, words)


# ---- files and reasons


def test_the_guide_has_every_reason_with_its_type_and_words() -> None:
    (rows,) = tables(section(DOCS / "files.md", "## Reasons"))
    told = tuple((names(r)[0], names(t)[0], words) for r, t, words in rows[1:])
    assert told == documented()


def test_the_front_page_has_the_exit_codes_of_the_guide() -> None:
    (front,) = tables(section(ROOT / "README.md", "## Exit codes"))
    (guide,) = tables(section(DOCS / "files.md", "## Exit codes"))
    codes = [code for row in front[1:] for code in re.findall(r"\d+", row[0])]
    assert codes == [row[0] for row in guide[1:]]


# ---- the database


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        upgrade(connection)
        yield connection


def test_the_guide_has_every_table_and_column(database: duckdb.DuckDBPyConnection) -> None:
    there = database.execute(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal"
        " AND table_name IN (SELECT table_name FROM duckdb_tables())"
    ).fetchall()
    page = DOCS / "analytics.md"
    told = [
        (table, names(row[0])[0])
        for table in re.findall(r"^### `(\w+)`$", page.read_text("utf-8"), re.MULTILINE)
        for rows in tables(section(page, f"### `{table}`"))
        for row in rows[1:]
    ]
    assert sorted(told) == sorted(there)


def test_the_guide_has_every_view(database: duckdb.DuckDBPyConnection) -> None:
    there = database.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    assert first_cells(section(DOCS / "analytics.md", "## Views")) == {name for (name,) in there}


# ---- permissions


def _examples() -> Iterator[tuple[str, str, str]]:
    """Each example of permissions.md: the rules as YAML, the call, and the verdict."""
    text = (DOCS / "permissions.md").read_text("utf-8")
    for found in re.finditer(
        r"```yaml\n(permissions:\n(?:(?!```).)*)```\n\n(\| call .*?)\n\n", text, re.DOTALL
    ):
        for rows in tables(found[2]):
            for call, verdict, _ in rows[1:]:
                yield found[1], names(call)[0], verdict


@pytest.mark.parametrize(("rules", "call", "verdict"), list(_examples()))
def test_a_worked_example_is_decided_as_the_guide_says(rules: str, call: str, verdict: str) -> None:
    declared = read_yaml(rules, Path("rules.yaml")).value["permissions"]
    policy = Policy((*DEFAULT_RULES, *rules_from(declared, "recipe:rules.yaml:1")))
    permission, _, what = call.partition(": ")
    root = Path("/home/me/project")
    match permission:
        case "bash":
            asks = asks_of(what, ShellPlace(root=root, cwd=root, tmp=Path("/home/me/tmp")))
        case "read" | "edit":
            asks = path_asks(permission, root / what, root)
        case "webfetch":
            asks = (Ask("webfetch", str(parse_url(what))),)
        case _:
            asks = (Ask(permission, what),)
    assert ("allow" if isinstance(policy.judge(asks), Allowed) else "deny") == verdict


def test_there_are_enough_worked_examples() -> None:
    assert len(list(_examples())) >= 30


# ---- dependencies


def test_the_guide_has_a_reason_for_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = {_name(line) for line in project["dependencies"]}
    assert first_cells(section(DOCS / "dependencies.md", "## Needed to run")) == needed
    extras = {
        (_name(line), extra)
        for extra, lines in project["optional-dependencies"].items()
        for line in lines
        if not line.startswith("harness-batch")
    }
    (rows,) = tables(section(DOCS / "dependencies.md", "## Extras"))
    assert {(names(row[0])[0], names(row[1])[0]) for row in rows[1:]} == extras


def _name(requirement: str) -> str:
    return re.split(r"[<>=!~\[ ;]", requirement, maxsplit=1)[0]


# ---- what the guide says of bad input


def test_a_key_the_guide_does_not_have_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text("prompt: Do it.\nchekcs: []\n")
    with pytest.raises(FaultyInput, match="did you mean `checks`"):
        open_recipe(file)


PLANNED = {
    "team": "team: {rounds: 1}",
    "protocol: tags": "protocol: tags",
    "cache": "cache: {ttl: 7d}",
}
"""What recipes.md calls planned, and how a recipe says it."""


def test_the_guide_names_what_is_planned() -> None:
    told = section(DOCS / "recipes.md", "## Planned").partition("|")[0]
    assert names(told) == list(PLANNED)


@pytest.mark.parametrize("line", PLANNED.values())
def test_what_is_planned_is_refused_by_name(line: str, tmp_path: Path) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text(f"prompt: Do it.\n{line}\n")
    with pytest.raises(FaultyInput, match="not supported by this version"):
        open_recipe(file)


def test_json_blocks_are_json() -> None:
    for page in PAGES:
        for block in blocks(page, "json"):
            json.loads(block.text)
