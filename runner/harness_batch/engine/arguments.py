"""A tool call's arguments: JSON first, then the tool's schema; what is wrong is words, no error."""

import json

from attrs import define, field
from jsonschema import Draft202012Validator, ValidationError
from referencing import Registry

from harness_batch.messages import JsonObject
from harness_batch.tools.protocol import Tool

MAX_FAULTS = 5
"""Faults of one call that the model is told of at once."""
MAX_FAULT_CHARACTERS = 500


def parsed(text: str) -> JsonObject | str:
    """The arguments, or words on why they are none."""
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        return str(error)[:200]
    return value if isinstance(value, dict) else f"it is a {type(value).__name__}"


@define
class Schemas:
    """The schemas of a session's tools, prepared when they are first needed."""

    _validators: dict[str, Draft202012Validator] = field(factory=dict)

    def faults(self, tool: Tool, arguments: JsonObject) -> str:
        """Each fault with its path and what was expected; empty when they hold to the schema."""
        validator = self._validators.get(tool.name)
        if validator is None:
            # An own registry: references lead nowhere but into the schema itself.
            validator = Draft202012Validator(tool.parameters, registry=Registry())
            self._validators[tool.name] = validator
        errors = sorted(validator.iter_errors(arguments), key=lambda e: list(map(str, e.path)))
        return "; ".join(map(_worded, errors[:MAX_FAULTS]))


def _worded(error: ValidationError) -> str:
    """Where, and what was expected; a value that is long does not crowd that out."""
    said = error.message
    if len(said) > MAX_FAULT_CHARACTERS:
        expected = json.dumps(error.validator_value, ensure_ascii=False, default=str)
        said = f"does not hold to {error.validator}: {expected[:MAX_FAULT_CHARACTERS]}"
    return f"{'.'.join(map(str, error.absolute_path)) or 'arguments'}: {said}"
