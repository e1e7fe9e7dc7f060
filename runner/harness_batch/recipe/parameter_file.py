"""The file of `--params`: a YAML or JSON mapping of parameter names to values."""

from pathlib import Path

from harness_batch.errors import Fault, FaultyInput
from harness_batch.messages import JsonObject
from harness_batch.recipe.file_text import read_small_text
from harness_batch.recipe.json_text import read_json
from harness_batch.recipe.yaml_text import read_yaml


def read_parameters(path: Path) -> JsonObject:
    """The mapping; an empty file is an empty one. Raises: FaultyInput."""
    text = read_small_text(path)
    reading = read_json(text, path) if path.suffix.lower() == ".json" else read_yaml(text, path)
    faults = list(reading.faults)
    value = {} if reading.value is None else reading.value
    if not isinstance(value, dict):
        faults.append(Fault(path, 1, 1, "parameters are a mapping of names to values"))
    if faults:
        raise FaultyInput(faults)
    mapping: JsonObject = value
    return mapping
