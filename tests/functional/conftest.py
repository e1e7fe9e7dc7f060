"""Fixtures of tests that run the command line as a process."""

from pathlib import Path

import pytest

from crash_cli import Stage, stage_at


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return stage_at(tmp_path / "stage")
