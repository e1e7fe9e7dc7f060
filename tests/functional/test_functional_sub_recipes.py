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

    assert "the agent.s own rule" in denied or "agent:explore" in denied
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


FAULTY = {
    "missing": ({"name": "a", "path": "none.yaml"}, {}, "there is no recipe `none.yaml`"),
    "reserved": ({"name": "bash", "path": "b.json"}, {}, "`bash` is a tool already"),
    "name": ({"name": "a b", "path": "b.json"}, {}, "becomes a tool's name"),
    "self": ({"name": "a", "path": "family.json"}, {}, "leads back to itself"),
    "circle": (
        {"name": "a", "path": "b.json"},
        {"sub_recipes": [{"name": "c", "path": "family.json"}]},
        "leads back to itself: family.json -> b.json -> family.json",
    ),
    "deep": (
        {"name": "a", "path": "b.json"},
        {"sub_recipes": [{"name": "c", "path": "c.json"}]},
        "nest at most 2 deep: family.json -> b.json -> c.json",
    ),
    "undeclared": (
        {"name": "a", "path": "b.json", "values": {"pakage": "x"}},
        {"parameters": [{"key": "package", "input_type": "string", "requirement": "required",
                         "description": ""}], "prompt": "{{ package }}"},
        "`a` declares no parameter `pakage`; did you mean `package`?",
    ),
    "matrix": ({"name": "a", "path": "b.json"}, {"matrix": {"x": [1]}}, "cannot have a `matrix`"),
    "sandbox": (
        {"name": "a", "path": "b.json"},
        {"sandbox": {"network": "none"}},
        "declare the same `sandbox` there",
    ),
    "its own": ({"name": "a", "path": "b.json"}, {"limits": {"steps": 0}}, "must be at least 1"),
    "model": ({"name": "a", "path": "b.json"}, {"model": "nobody/x"}, "unknown provider 'nobody'"),
    "agent": ({"name": "a", "path": "b.json"}, {"agent": "nobody"}, "unknown agent 'nobody'"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTY)
def test_faults_of_sub_recipes_are_told_at_the_door(name: str, tmp_path: Path) -> None:
    entry, below, told = FAULTY[name]
    family = Family(
        models={"lead": []},
        recipe={"sub_recipes": [entry], "permissions": {"task": {"*": "allow"}}},
        recipes={
            "b.json": {"prompt": "b", **below},
            "c.json": {"prompt": "c", "sub_recipes": [{"name": "d", "path": "d.json"}]},
            "d.json": {"prompt": "d"},
        },
    )

    code, words = validated(tmp_path, family)
    assert code == 2, words
    assert told in words
