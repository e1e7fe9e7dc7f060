"""Markdown with a YAML head as a tree, a body and the line of every value.

YAML 1.2 booleans only (`on` is a word), no aliases, no tags, no key twice.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from attrs import frozen

from harness_batch.errors import Fault, FaultyInput

MAX_CHARACTERS = 200_000

Steps = tuple[str | int, ...]

_HEAD = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)(.*)\Z", re.DOTALL | re.MULTILINE)
_SCALARS = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
)
_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("str", "map", "seq", *(s[0] for s in _SCALARS))
)


@frozen
class FrontMatter:
    """The head's tree, the text below it, and places by path."""

    head: dict[str, Any]
    body: str
    places: dict[Steps, tuple[int, int]]

    def place(self, path: Steps) -> tuple[int, int]:
        """Line and column (1-based) of a value, else of its nearest known ancestor."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, (1, 1))


class _Loader(yaml.SafeLoader):
    """Composes; aliases are refused, since a few of them can stand for gigabytes."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own way

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # untyped in PyYAML
            raise yaml.composer.ComposerError(None, None, "aliases are not allowed", mark)
        return super().compose_node(parent, index)


for _name, _form, _first in _SCALARS:
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_name}", re.compile(f"(?:{_form})$"), list(_first)
    )


def split(text: str, file: Path) -> FrontMatter:
    """Raises: FaultyInput with the faults of the form; what the words mean is the caller's."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if len(text) > MAX_CHARACTERS:
        raise FaultyInput([Fault(file, 0, 0, f"is longer than {MAX_CHARACTERS:,} characters")])
    found = _HEAD.match(text)
    if found is None:
        told = "must begin with a head between two lines of ---"
        raise FaultyInput([Fault(file, 1, 1, told)])
    places: dict[Steps, tuple[int, int]] = {}
    faults: list[Fault] = []
    head = _tree(found[1], file, places, faults)
    if faults:
        raise FaultyInput(faults)
    return FrontMatter(head, found[2].strip(), places)


def _tree(
    text: str, file: Path, places: dict[Steps, tuple[int, int]], faults: list[Fault]
) -> dict[str, Any]:
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        for path, mark, told in _checked(root, (), places):
            faults.append(Fault(file, mark.line + 2, mark.column + 1, f"{told}{_at(path)}"))
        head = {} if faults or root is None else loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        where = error.problem_mark or error.context_mark
        line, column = (1, 1) if where is None else (where.line + 2, where.column + 1)
        faults.append(Fault(file, line, column, f"is not YAML: {error.problem or error.context}"))
        return {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        faults.append(Fault(file, 1, 1, f"is not YAML: {str(error)[:200]}"))
        return {}
    finally:
        loader.dispose()
    if not isinstance(head, dict):
        faults.append(Fault(file, 2, 1, "the head must be a mapping of keys to values"))
        return {}
    return head


def _at(path: Steps) -> str:
    return f" in {'.'.join(map(str, path))}" if path else ""


def _checked(
    node: yaml.Node | None, path: Steps, places: dict[Steps, tuple[int, int]]
) -> Iterator[tuple[Steps, yaml.Mark, str]]:
    if node is None:
        return
    places.setdefault(path, (node.start_mark.line + 2, node.start_mark.column + 1))
    if node.tag not in _TAGS:
        yield path, node.start_mark, f"the tag {node.tag} is not allowed"
    match node:
        case yaml.MappingNode():
            for key, value in node.value:
                if not isinstance(key, yaml.ScalarNode) or not key.tag.endswith(":str"):
                    yield path, key.start_mark, "keys must be plain words"
                    continue
                here = (*path, key.value)
                if here in places:
                    yield path, key.start_mark, f"the key {key.value!r} is there twice"
                places[here] = (key.start_mark.line + 2, key.start_mark.column + 1)
                yield from _checked(value, here, places)
        case yaml.SequenceNode():
            for index, value in enumerate(node.value):
                yield from _checked(value, (*path, index), places)
        case _:
            pass
