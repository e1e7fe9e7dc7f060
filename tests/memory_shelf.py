"""A shelf of agents, skills and commands in memory."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import frozen


@frozen
class MemoryShelf:
    """`files` by path; a text that is an OSError cannot be read."""

    files: Mapping[str, str | bytes | OSError]
    trusted: bool = True
    folder: Path = Path("/shelf")

    def names(self, kind: str) -> Sequence[str]:
        return sorted(name for name in self.files if name.startswith(f"{kind}/"))

    def read(self, name: str, most: int) -> bytes:
        content = self.files[name]
        if isinstance(content, OSError):
            raise content
        return (content.encode() if isinstance(content, str) else content)[:most]

    def place(self, name: str) -> Path:
        return self.folder / name

    def shown(self, name: str) -> str:
        return f"shown/{name}"
