"""goose's sub-recipes through the command line: tools with parameters, run as child sessions."""

import json
from pathlib import Path
from typing import Any

import pytest

from functional_children import Family, FamilyRun, carry_out, results_in, tool_names, validated
from wire import Call, Reply, Say

LINT: dict[str, Any] = {
    "version": "1.0.0",
    "title": "Lint",
    "description": "Lints one package.",
    "model": "wire/linter",
    "agent": "explore",
    "instructions": "You lint {{ package }} in {{ style }} style.",
    "prompt": "Lint {{ package }}, level {{ level }}, for {{ owner }}.",
    "parameters": [
        {
            "key": "package",
            "input_type": "string",
            "requirement": "required",
            "description": "Which package.",
        },
        {"key": "style", "input_type": "select", "requirement": "optional",
         "options": ["strict", "lax"], "default": "lax", "description": "How."},
        {"key": "level", "input_type": "number", "requirement": "required", "description": "1-3"},
        {"key": "owner", "input_type": "string", "requirement": "required", "description": "Who."},
    ],
    "permissions": {"edit": "allow", "read": "allow"},
    "response": {"json_schema": {"type": "object", "properties": {"faults": {"type": "integer"}}}},
}  # fmt: skip
PARENT: dict[str, Any] = {
    "parameters": [
        {"key": "team", "input_type": "string", "requirement": "optional", "default": "core",
         "description": "Whose code."}
    ],
    "prompt": "Have everything linted for {{ team }}.",
    "sub_recipes": [
        {"name": "lint", "path": "sub/lint.json", "values": {"owner": "{{ team }}"},
         "sequential_when_repeated": True},
        {"name": "locked", "path": "{{ recipe_dir }}/sub/lint.json", "description": "Locked away."},
    ],
    "permissions": {"task": {"lint": "allow"}, "edit": {"shop/**": "allow"}},
}  # fmt: skip


def lint(**arguments: Any) -> Call:
    return Call("lint", arguments)


@pytest.fixture(scope="module")
def linted(tmp_path_factory: pytest.TempPathFactory) -> FamilyRun:
    write = Call("write", {"file_path": "shop/x.py", "content": ""})
    family = Family(
        recipe=PARENT,
        recipes={"sub/lint.json": LINT},
        models={
            "lead": [
                Reply(
                    lint(package="shop", level=2),
                    lint(package="shop", level="two"),
                    lint(package="shop", level=1, owner="me"),
                    Call("locked", {"package": "shop", "level": 1, "owner": "me"}),
                ),
                Reply(Say("Linted.")),
            ],
            "linter": [Reply(write), Reply(Call("final_output", {"faults": 3}))],
        },
    )
    return carry_out(tmp_path_factory.mktemp("linted"), family)


def test_a_sub_recipe_is_a_tool_with_its_parameters(linted: FamilyRun) -> None:
    assert linted.exit_code == 0, linted.stderr
    (tool,) = (t for t in linted.requests_of("lead")[0].json["tools"] if t["name"] == "lint")

    assert tool["description"].startswith("Lints one package.")
    assert tool["input_schema"] == {
        "type": "object",
        "properties": {
            "package": {"type": "string", "description": "Which package."},
            "style": {
                "type": "string",
                "description": "How.",
                "enum": ["strict", "lax"],
                "default": "lax",
            },
            "level": {"type": "number", "description": "1-3"},
        },
        "required": ["package", "level"],
        "additionalProperties": False,
    }


def test_a_call_runs_it_as_a_child_with_its_own_words_and_answer(linted: FamilyRun) -> None:
    first = linted.requests_of("linter")[0].json
    words = json.dumps(first)

    assert "Lint shop, level 2, for core." in words
    assert "You lint shop in lax style." in words
    (child,) = linted.children
    assert (child["recipe"], child["agent"], child["status"]) == ("lint", "explore", "passed")
    assert json.loads(child["params"]) == {
        "package": "shop",
        "style": "lax",
        "level": 2,
        "owner": "core",
    }
    result = results_in(linted.requests_of("lead")[1])[0]
    assert result == f'session: {child["session_id"]}\nstate: completed\n\n{{"faults": 3}}'


def test_its_own_agent_and_its_parent_both_bound_what_it_may_do(linted: FamilyRun) -> None:
    (denied,) = results_in(linted.requests_of("linter")[1])

    assert "the agent's own rule" in denied
    assert "lint" not in tool_names(linted.requests_of("linter")[0])
    assert "task" not in tool_names(linted.requests_of("linter")[0])


def test_arguments_are_checked_and_preset_values_cannot_be_given(linted: FamilyRun) -> None:
    _, wrong, preset, _ = results_in(linted.requests_of("lead")[1])

    assert "level: 'two' is not of type 'number'" in wrong
    assert "'owner' was unexpected" in preset


def test_a_sub_recipe_needs_a_rule_and_is_told_so(linted: FamilyRun) -> None:
    locked = results_in(linted.requests_of("lead")[1])[3]

    assert "locked" not in tool_names(linted.requests_of("lead")[0])
    assert "task" in locked
    assert "sub-recipe `locked` cannot be started" in linted.stderr
    assert "`task: {locked: allow}`" in linted.stderr


def test_a_sub_recipe_that_declares_retry_has_attempts_of_its_own(tmp_path: Path) -> None:
    check = {"type": "shell", "command": "test -e shop/x.py"}
    retry = {"max_retries": 2, "feedback": True, "reset": True, "checks": [check]}
    again: dict[str, Any] = {**LINT, "retry": retry, "agent": "build"}
    write = Call("write", {"file_path": "shop/x.py", "content": "X = 1\n"})
    family = Family(
        recipe=PARENT,
        recipes={"sub/lint.json": again},
        models={
            "lead": [Reply(lint(package="shop", level=2)), Reply(Say("Linted."))],
            "linter": [
                Reply(Call("final_output", {"faults": 3})),
                Reply(write, Call("final_output", {"faults": 0})),
            ],
        },
    )
    run = carry_out(tmp_path, family)

    assert run.exit_code == 0, run.stderr
    (child,) = run.children
    assert (child["status"], child["attempts"]) == ("passed", 2)
    mine = f"session_id = '{child['session_id']}'"
    attempts = run.rows(f"SELECT n, status, reason FROM attempt WHERE {mine} ORDER BY n")
    assert [tuple(row.values()) for row in attempts] == [
        (1, "failed", "check:retry-1"),
        (2, "passed", None),
    ]
    assert '{"faults": 0}' in results_in(run.requests_of("lead")[1])[0]
    assert run.top["attempts"] == 1


def test_what_a_sub_recipe_names_is_checked_before_anything_runs(tmp_path: Path) -> None:
    family = Family(
        models={"lead": []},
        recipe={
            "sub_recipes": [
                {"name": "a", "path": "a.json"},
                {"name": "b", "path": "b.json"},
                {"name": "c", "path": "{{ recipe_dir }}/c.json"},
            ],
            "permissions": {"task": {"*": "allow"}},
        },
        recipes={
            "a.json": {"prompt": "a", "model": "nobody/x"},
            "b.json": {"prompt": "b", "agent": "nobody"},
            "c.json": {"prompt": "c"},
        },
        agents={"helper": {"model": "wire/unknown", "prompt": "?"}},
    )

    code, words = validated(tmp_path, family)
    assert code == 2, words
    assert "sub-recipe `a`: agent 'build': unknown provider `nobody`" in words
    assert "sub-recipe `b`: unknown agent `nobody`" in words
