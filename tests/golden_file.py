"""Comparison with a file under `tests/golden/`, rewritten by `pytest --update-golden`."""

from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


def agrees(request: pytest.FixtureRequest, name: str, got: bytes | str) -> None:
    """Fails unless `tests/golden/<name>` holds exactly `got`."""
    path = GOLDEN / name
    data = got.encode() if isinstance(got, str) else got
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    assert path.is_file(), f"no golden file {path}: run pytest --update-golden and read it"
    assert data.decode() == path.read_text("utf-8")
