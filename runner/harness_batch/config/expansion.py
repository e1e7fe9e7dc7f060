"""`{env:NAME}` and `{file:PATH}` in the user's own files, and which values are secrets by that.

Never applied to a repository's file unless the user trusts it: a value could otherwise carry the
user's secrets to a server of the repository's choice.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import define, field

from harness_batch.config.document import Document, Steps
from harness_batch.errors import Fault

REFERENCE = re.compile(r"\{(env|file):([^{}]*)\}")
MAX_FILE_BYTES = 1_000_000


@define
class Expansion:
    """One document's references resolved: the new tree, its secrets, its faults."""

    document: Document
    environ: Mapping[str, str]
    secrets: list[str] = field(factory=list, repr=False)
    faults: list[Fault] = field(factory=list)

    def body(self) -> dict[str, Any]:
        """The tree with every reference resolved.

        An `api_key` whose variable is not set becomes None, with the variable's name beside it as
        `api_key_env`: only the session that needs the key can say whether it matters.
        """
        body: dict[str, Any] = self._value(self.document.body, ())
        for path, text in _api_keys(self.document):
            provider = body["provider"][path[1]]
            provider["api_key_env"] = next(iter(_variables(text)), None)
            provider["api_key_file"] = self._key_file(text)
            provider["api_key"] = self._api_key(path, text)
        return body

    def _value(self, value: Any, path: Steps) -> Any:  # noqa: ANN401 - any JSON value
        match value:
            case dict():
                return {key: self._value(inner, (*path, key)) for key, inner in value.items()}
            case list():
                return [self._value(inner, (*path, i)) for i, inner in enumerate(value)]
            case str() if not _is_api_key(path):
                return self._text(value, path)
            case _:
                return value

    def _api_key(self, path: Steps, text: str) -> str | None:
        if any(not self.environ.get(name) for name in _variables(text)):
            return None
        resolved = self._text(text, path)
        if resolved:
            self.secrets.append(resolved)
        return resolved or None

    def _key_file(self, text: str) -> Path | None:
        """The file that is the whole of a key."""
        found = REFERENCE.fullmatch(text)
        return self._place(found[2]) if found and found[1] == "file" else None

    def _text(self, text: str, path: Steps) -> str:
        return REFERENCE.sub(lambda found: self._resolved(found[1], found[2], path), text)

    def _resolved(self, kind: str, name: str, path: Steps) -> str:
        value = self._variable(name, path) if kind == "env" else self._content(name, path)
        if value and (_is_api_key(path) or _is_header(path)):
            self.secrets.append(value)
        return value

    def _variable(self, name: str, path: Steps) -> str:
        value = self.environ.get(name, "")
        if not value:
            told = f"the environment variable {name!r} of {{env:{name}}} is not set"
            self.faults.append(self.document.fault(path, told if name else "{env:} names nothing"))
        return value

    def _content(self, name: str, path: Steps) -> str:
        try:
            return file_text(self._place(name))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            told = f"{{file:{name}}} cannot be read: {reason}"
            self.faults.append(self.document.fault(path, told))
            return ""

    def _place(self, name: str) -> Path:
        home = self.environ.get("HOME", "")
        place = Path(name.replace("~", home, 1) if name.startswith("~/") and home else name)
        return self.document.file.parent / place


def file_text(file: Path) -> str:
    """What `{file:}` stands for: the content without its last line end.

    Raises: OSError, ValueError.
    """
    with file.open("rb") as stream:
        content = stream.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"larger than {MAX_FILE_BYTES:,} bytes")
    try:
        return content.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        # Its own words quote a byte of what may be a key.
        raise ValueError("it is not UTF-8 text") from None


def references(value: object, path: Steps = ()) -> Iterator[Steps]:
    """Where a tree holds `{env:}` or `{file:}`."""
    match value:
        case dict():
            for key, inner in value.items():
                yield from references(inner, (*path, key))
        case list():
            for index, inner in enumerate(value):
                yield from references(inner, (*path, index))
        case str() if REFERENCE.search(value):
            yield path
        case _:
            pass


def _api_keys(document: Document) -> Iterator[tuple[Steps, str]]:
    for name, provider in document.body.get("provider", {}).items():
        if "api_key" in provider:
            yield ("provider", name, "api_key"), provider["api_key"]


def _variables(text: str) -> list[str]:
    return [name for kind, name in REFERENCE.findall(text) if kind == "env" and name]


def _is_api_key(path: Steps) -> bool:
    return len(path) == 3 and path[0] == "provider" and path[2] == "api_key"


def _is_header(path: Steps) -> bool:
    return len(path) == 4 and path[0] == "provider" and path[2] in {"headers", "query"}
