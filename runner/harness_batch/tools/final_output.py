"""The final_output tool: the session's answer in the shape that the recipe demands."""

from collections.abc import Sequence

from attrs import frozen

from harness_batch.messages import JsonObject
from harness_batch.rules import Ask
from harness_batch.tools.protocol import ToolContext, ToolResult

WRAPPED = "value"
"""The key that holds the answer when the recipe's schema is not one of an object."""


@frozen
class FinalOutputTool:
    """Takes the answer; whether it fits the schema was decided before it runs."""

    schema: JsonObject
    name: str = "final_output"
    permission: str = ""
    """None is needed: `asks` is empty."""
    description: str = (
        "Gives your final answer in the required form. Call it once, when the work is done; if "
        "it is refused, mend the arguments and call it again."
    )

    @property
    def parameters(self) -> JsonObject:
        """The recipe's schema; one that is not of an object is wrapped, as arguments are one."""
        if self.schema.get("type", "object") == "object":
            return {"type": "object", **self.schema}
        return {
            "type": "object",
            "properties": {WRAPPED: _moved(self.schema)},
            "required": [WRAPPED],
            "additionalProperties": False,
        }

    def asks(self, arguments: JsonObject, context: ToolContext) -> Sequence[Ask] | ToolResult:
        """Nothing."""
        del arguments, context
        return ()

    async def run(self, arguments: JsonObject, context: ToolContext, call_id: str) -> ToolResult:
        """The answer itself is `metadata["final_output"]`."""
        del context, call_id
        plain = self.schema.get("type", "object") == "object"
        answer = arguments if plain else arguments[WRAPPED]
        return ToolResult(
            output="The final answer was taken. Nothing more is needed.",
            title="final output",
            metadata={"final_output": answer},
        )


def _moved(schema: object) -> object:
    """The schema as a part of another one: references to its own top lead there still."""
    match schema:
        case dict():
            return {key: _reference(key, value) for key, value in schema.items()}
        case list():
            return [_moved(value) for value in schema]
        case _:
            return schema


def _reference(key: str, value: object) -> object:
    if key == "$ref" and isinstance(value, str) and (value == "#" or value.startswith("#/")):
        return f"#/properties/{WRAPPED}{value[1:]}"
    return _moved(value)


def final_output(schema: JsonObject) -> FinalOutputTool:
    """The tool for a recipe's `response.json_schema`."""
    return FinalOutputTool(schema)
