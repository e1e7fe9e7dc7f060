"""The door of model scripts: YAML in, frozen steps out, all faults at once with their places.

A script is a list of `{text, calls: [{name, arguments}]}`, one entry a model reply. Plain scalars
are read as YAML 1.2 reads them, so that `yes` and `on` in a file to be written stay words.
"""

import re
from pathlib import Path
from typing import Any

import yaml
from attrs import define, field, frozen

from harness_batch.errors import Fault, FaultyInput
from harness_batch.messages import JsonObject

MAX_BYTES = 4 * 1024 * 1024
MAX_NODES = 100_000
MAX_DEPTH = 64

_INT = re.compile(r"[-+]?[0-9]{1,4000}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


@frozen
class ScriptedCall:
    """A tool call that the script makes."""

    name: str
    arguments: JsonObject


@frozen
class ScriptedStep:
    """One reply of the script."""

    text: str
    calls: tuple[ScriptedCall, ...]


def read_script(path: Path) -> tuple[ScriptedStep, ...]:
    """The steps of the file.

    Raises: FaultyInput with every fault of it.
    """
    door = _Door(path)
    steps = door.steps()
    if door.faults:
        raise FaultyInput(door.faults)
    return steps


@define
class _Door:
    path: Path
    faults: list[Fault] = field(factory=list)
    _nodes: int = 0

    def steps(self) -> tuple[ScriptedStep, ...]:
        root = self._root()
        if root is None:
            return ()
        if not isinstance(root, yaml.SequenceNode):
            self._fault(root, "a model script is a list of {text, calls} entries")
            return ()
        return tuple(self._step(node) for node in root.value)

    def _root(self) -> yaml.Node | None:
        try:
            data = self.path.read_bytes()
            if len(data) > MAX_BYTES:
                self._whole(f"larger than {MAX_BYTES} bytes")
                return None
            root = yaml.compose(data.decode("utf-8-sig"), Loader=yaml.CSafeLoader)
        except OSError as error:
            self._whole(f"cannot read the model script: {error.strerror or error}")
        except UnicodeDecodeError as error:
            self._whole(f"is not UTF-8 (byte {error.start})")
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
            self.faults.append(Fault(self.path, line, column, f"not YAML: {error.problem}"))
        except (yaml.YAMLError, RecursionError) as error:
            self._whole(f"not YAML: {' '.join(str(error).split())}")
        else:
            if root is None:
                self._whole("the model script is empty; it is a list of {text, calls} entries")
            return root
        return None

    def _step(self, node: yaml.Node) -> ScriptedStep:
        fields = self._fields(node, ("text", "calls"), "an entry is {text, calls}")
        text = self._text(fields["text"], "text") if "text" in fields else ""
        calls = fields.get("calls")
        if calls is None:
            return ScriptedStep(text, ())
        if not isinstance(calls, yaml.SequenceNode):
            self._fault(calls, "calls is a list of {name, arguments}")
            return ScriptedStep(text, ())
        return ScriptedStep(text, tuple(self._call(call) for call in calls.value))

    def _call(self, node: yaml.Node) -> ScriptedCall:
        fields = self._fields(node, ("name", "arguments"), "a call is {name, arguments}")
        if "name" not in fields and isinstance(node, yaml.MappingNode):
            self._fault(node, "the call has no name")
        name = self._text(fields["name"], "name") if "name" in fields else ""
        given = fields.get("arguments")
        if given is not None and not isinstance(given, yaml.MappingNode):
            self._fault(given, "arguments is an object")
            return ScriptedCall(name, {})
        return ScriptedCall(name, self._value(given, 0) if given is not None else {})

    def _fields(self, node: yaml.Node, known: tuple[str, ...], form: str) -> dict[str, yaml.Node]:
        if not isinstance(node, yaml.MappingNode):
            self._fault(node, form)
            return {}
        fields: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "?"
            if name not in known:
                self._fault(key, f"unknown key {name!r}; {form}")
            elif name in fields:
                self._fault(key, f"{name} is there twice")
            else:
                fields[name] = value
        return fields

    def _text(self, node: yaml.Node, name: str) -> str:
        if not isinstance(node, yaml.ScalarNode):
            self._fault(node, f"{name} is a text")
            return ""
        return str(node.value)

    def _value(self, node: yaml.Node, depth: int) -> Any:  # noqa: ANN401 - any JSON value
        self._nodes += 1
        if self._nodes > MAX_NODES or depth > MAX_DEPTH:
            if not any("too large" in fault.message for fault in self.faults):
                self._fault(node, "the arguments are too large or too deep")
            return None
        match node:
            case yaml.MappingNode():
                return self._object(node, depth)
            case yaml.SequenceNode():
                return [self._value(item, depth + 1) for item in node.value]
            case _:
                return _scalar(node)

    def _object(self, node: yaml.MappingNode, depth: int) -> JsonObject:
        made: JsonObject = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._fault(key, "a key is a text")
            elif key.value in made:
                self._fault(key, f"{key.value} is there twice")
            else:
                made[key.value] = self._value(value, depth + 1)
        return made

    def _fault(self, node: yaml.Node, message: str) -> None:
        mark = node.start_mark
        self.faults.append(Fault(self.path, mark.line + 1, mark.column + 1, message))

    def _whole(self, message: str) -> None:
        self.faults.append(Fault(self.path, 0, 0, message))


def _scalar(node: yaml.Node) -> Any:  # noqa: ANN401 - any JSON scalar
    text = str(node.value)
    if not isinstance(node, yaml.ScalarNode) or node.style:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
