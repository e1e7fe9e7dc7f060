"""The recipe's JSON Schema, and its verdict as faults of a recipe file.

The schema is the file recipe.schema.json beside this one; `harness-batch schema` prints it.
"""

import json
from functools import cache
from importlib import resources

from jsonschema import Draft202012Validator

from harness_batch.errors import Fault
from harness_batch.messages import JsonObject
from harness_batch.recipe.source_map import SourceMap
from harness_batch.schema_faults import complaints, validator


@cache
def _text() -> str:
    return (resources.files(__package__) / "recipe.schema.json").read_text(encoding="utf-8")


@cache
def _validator() -> Draft202012Validator:
    return validator(json.loads(_text()))


def recipe_schema() -> JsonObject:
    """A fresh copy of the schema."""
    schema: JsonObject = json.loads(_text())
    return schema


def recipe_faults(document: JsonObject, source: SourceMap) -> tuple[list[Fault], set[str]]:
    """All faults, and the top-level keys that have one: what is left is sound."""
    faults: list[Fault] = []
    unsound: set[str] = set()
    for complaint in complaints(document, _validator(), "the recipe"):
        fault = source.key_fault if complaint.of_key else source.fault
        faults.append(fault(complaint.path, complaint.message))
        unsound.update(str(step) for step in complaint.path[:1])
    return faults, unsound
