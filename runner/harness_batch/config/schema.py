"""The JSON Schema of configuration files, as editors and `harness-batch schema` show it."""

import json
from functools import cache
from importlib.resources import files

from harness_batch.messages import JsonObject


def config_schema() -> JsonObject:
    """A fresh copy of the schema."""
    schema: JsonObject = json.loads(_text())
    return schema


@cache
def _text() -> str:
    return files("harness_batch.config").joinpath("schema.json").read_text(encoding="utf-8")
