"""Options of the kill tests. They exist only when this folder is named, as `make chaos` does."""

from __future__ import annotations

from typing import Final

import pytest

SEED: Final = 20261120


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("chaos")
    group.addoption("--long", action="store_true", help="the long form of the kill tests")
    group.addoption("--seed", type=int, default=SEED, help="where their dice start")


@pytest.fixture
def is_long(request: pytest.FixtureRequest) -> bool:
    """Whether to kill for minutes instead of seconds."""
    return bool(request.config.getoption("--long", default=False))


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Where the dice of this run start; printed with what is found."""
    return int(request.config.getoption("--seed", default=SEED))
