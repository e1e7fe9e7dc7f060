"""The answer's tool: the recipe's schema as arguments that every provider takes."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry

from harness_batch.tools.final_output import final_output

FINDING = {"type": "object", "properties": {"line": {"type": "integer"}}, "required": ["line"]}


def holds(schema: dict[str, Any], arguments: dict[str, Any]) -> bool:
    tool = final_output(schema)
    return Draft202012Validator(tool.parameters, registry=Registry()).is_valid(arguments)


def test_a_schema_of_an_object_is_the_tools_own() -> None:
    schema = {"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"type": "integer"}}}
    assert final_output(schema).parameters == {"type": "object", **schema}
    assert holds(schema, {"a": 1})
    assert not holds(schema, {"a": "1"})


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "array", "items": {"type": "string"}}, ["a"], [1]),
        ({"type": "string", "enum": ["yes", "no"]}, "yes", "maybe"),
        (
            {"type": "array", "items": {"$ref": "#/$defs/finding"}, "$defs": {"finding": FINDING}},
            [{"line": 3}],
            [{"line": "3"}],
        ),
        ({"type": "array", "items": {"$ref": "#"}}, [[], [[]]], [[1]]),
        ({"type": ["object", "null"], "required": ["x"]}, None, {}),
    ],
)
def test_any_other_value_is_wrapped_and_its_references_still_lead_to_its_own_parts(
    schema: dict[str, Any], good: Any, bad: Any
) -> None:
    assert final_output(schema).parameters["type"] == "object"
    assert holds(schema, {"value": good})
    assert not holds(schema, {"value": bad})
    assert not holds(schema, {"value": good, "more": 1})
    assert not holds(schema, {})
