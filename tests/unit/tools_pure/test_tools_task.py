"""The tools that hand work to children, on delegates in memory."""

from pathlib import Path
from typing import Any

import trio
from jsonschema import Draft202012Validator

from fakes_children import MemoryDelegates
from fakes_tools import GroupLauncher
from harness_batch.rules import Ask
from harness_batch.tools.protocol import ToolContext, ToolResult
from harness_batch.tools.sub_recipe import SubRecipeTool
from harness_batch.tools.task import TaskTool

HERE = Path("/nowhere")
CONTEXT = ToolContext(
    root=HERE, cwd=HERE, launcher=GroupLauncher(), outputs=HERE, may=lambda _: True
)


def task(**more: Any) -> dict[str, Any]:
    return {"description": "look", "prompt": "answer yes", "agent": "helper"} | more


def tool(delegates: MemoryDelegates) -> TaskTool:
    return TaskTool(delegates, delegates.agents())


def test_the_tool_lists_who_may_be_named() -> None:
    told = tool(MemoryDelegates()).description

    assert told.endswith("Agents:\n- helper: Helps.\n- other: Helps otherwise.")


def test_arguments_are_the_contracts() -> None:
    schema = tool(MemoryDelegates()).parameters

    Draft202012Validator.check_schema(schema)
    assert set(schema["properties"]) == {"description", "prompt", "agent", "session", "background"}
    assert schema["required"] == ["description", "prompt", "agent"]


def test_it_asks_for_task_with_the_agents_name() -> None:
    assert tool(MemoryDelegates()).asks(task(), CONTEXT) == (Ask("task", "helper"),)


def test_an_unknown_agent_is_an_error_that_names_those_that_may_be_used() -> None:
    refused = tool(MemoryDelegates()).asks(task(agent="nobody"), CONTEXT)

    assert isinstance(refused, ToolResult)
    assert refused.status == "error"
    assert refused.output.endswith("agents you may use: helper, other")


async def test_results_hold_id_state_and_answer() -> None:
    delegates = MemoryDelegates()
    done = await tool(delegates).run(task(), CONTEXT, "c1")
    failed = await tool(delegates).run(task(prompt="fail doom_loop"), CONTEXT, "c2")
    begun = await tool(delegates).run(task(background=True), CONTEXT, "c3")
    never = await tool(delegates).run(task(prompt="never"), CONTEXT, "c4")

    assert (done.status, done.output) == ("completed", "session: ses_0\nstate: completed\n\nyes")
    assert done.metadata == {"session": "ses_0", "state": "completed"}
    assert failed.status == "error"
    assert failed.output == "session: ses_1\nstate: error (doom_loop: so it is)"
    assert begun.status == "completed"
    assert "state: running (later)" in begun.output
    assert (never.status, never.output) == ("error", "its model is not granted")
    assert delegates.sent[-1].background


async def test_a_sub_recipe_asks_by_its_name_and_hands_its_arguments_on() -> None:
    delegates = MemoryDelegates()
    lint = SubRecipeTool(
        delegates=delegates, name="lint", about="Lints.", parameters={"type": "object"}
    )

    assert lint.asks({}, CONTEXT) == (Ask("task", "lint"),)
    assert lint.description.startswith("Lints.\n\n")
    result = await lint.run({"do": "answer clean"}, CONTEXT, "c1")
    assert "clean" in result.output
    assert delegates.recipes == [("lint", {"do": "answer clean"})]
    await trio.lowlevel.checkpoint()
