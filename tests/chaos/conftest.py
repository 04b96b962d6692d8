"""How long the kill tests take, and where their dice start."""

from __future__ import annotations

from typing import Final

import pytest

SEED: Final = 20261120


def pytest_addoption(parser: pytest.Parser) -> None:
    """Exists only when this folder is named, as `make chaos` does."""
    group = parser.getgroup("chaos")
    group.addoption("--seed", type=int, default=SEED, help="where their dice start")


@pytest.fixture
def is_long(request: pytest.FixtureRequest) -> bool:
    """Whether to kill for minutes instead of seconds."""
    return bool(request.config.getoption("--long"))


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Where the dice of this run start; printed with what is found."""
    return int(request.config.getoption("--seed", default=SEED))
