"""The tools as the model is shown them, and the small ones among them."""

from pathlib import Path

import jsonschema
import pytest

from fakes_tools import desk
from harness_batch.rules import PERMISSIONS, Ask
from harness_batch.tools.protocol import Tool
from harness_batch.tools.table import bundled_tools, final_output
from harness_batch.tools.todo import TodoTool

TOOLS = {tool.name: tool for tool in bundled_tools()}
ARGUMENTS = {
    "bash": ({"command"}, {"timeout", "workdir", "description"}),
    "read": ({"file_path"}, {"offset", "limit"}),
    "write": ({"file_path", "content"}, set()),
    "edit": ({"file_path", "old_string", "new_string"}, {"replace_all"}),
    "multiedit": ({"file_path", "edits"}, set()),
    "glob": ({"pattern"}, {"path"}),
    "grep": ({"pattern"}, {"path", "include"}),
    "todo": ({"todos"}, set()),
    "webfetch": ({"url"}, {"format"}),
}


def test_names_and_arguments_are_those_of_the_contract() -> None:
    assert list(TOOLS) == sorted(ARGUMENTS)
    for name, (required, optional) in ARGUMENTS.items():
        schema = TOOLS[name].parameters
        assert set(schema["required"]) == required
        assert set(schema["properties"]) == required | optional


@pytest.mark.parametrize("tool", TOOLS.values(), ids=list(TOOLS))
def test_schemas_are_valid_and_closed(tool: Tool) -> None:
    jsonschema.Draft202012Validator.check_schema(tool.parameters)
    assert tool.parameters["additionalProperties"] is False
    assert tool.permission in PERMISSIONS
    assert len(tool.description) < 800


async def test_todo_keeps_the_list_and_says_it_back(tmp_path: Path) -> None:
    here = desk(tmp_path)
    todos = [
        {"content": "look", "status": "completed"},
        {"content": "mend", "status": "in_progress", "priority": "high"},
    ]

    result = await here.call(TodoTool(), todos=todos)
    emptied = await here.call(TodoTool(), todos=[])

    assert here.asks(TodoTool(), todos=todos) == (Ask("todo", "todo"),)
    assert result.output == "1 of 2 to do\n[x] look\n[>] mend (high)"
    assert emptied.output == "0 of 0 to do\n(empty)"
    assert here.context.todos == []


async def test_final_output_takes_the_recipes_schema_and_needs_no_permission(
    tmp_path: Path,
) -> None:
    here = desk(tmp_path)
    tool = final_output({"properties": {"ok": {"type": "boolean"}}, "required": ["ok"]})

    result = await here.call(tool, ok=True)

    assert tool.parameters["type"] == "object"
    assert here.asks(tool, ok=True) == ()
    assert result.metadata["final_output"] == {"ok": True}


async def test_a_schema_that_is_not_of_an_object_is_wrapped(tmp_path: Path) -> None:
    tool = final_output({"type": "array", "items": {"type": "string"}})

    result = await desk(tmp_path).call(tool, value=["a"])

    jsonschema.validate({"value": ["a"]}, tool.parameters)
    assert result.metadata["final_output"] == ["a"]
