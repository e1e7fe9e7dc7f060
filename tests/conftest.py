"""Options that every test folder shares."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write what the tests got into the golden files; read the difference",
    )
