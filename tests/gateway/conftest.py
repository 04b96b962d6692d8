"""Fixtures: a gateway with its default settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.gateway import Gate, running_gateway


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncIterator[Gate]:
    """A gateway of its own."""
    async with running_gateway(tmp_path) as gate:
        yield gate


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_gate(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gate]:
    """One for a module whose tests leave nothing behind that another would find.

    Such a module is marked ``pytest.mark.asyncio(loop_scope="module")``.
    """
    async with running_gateway(tmp_path_factory.mktemp("home")) as gate:
        yield gate
