"""Fixtures: a gateway with its default settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.gateway import Gate, running_gateway


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncIterator[Gate]:
    """A gateway of its own."""
    async with running_gateway(tmp_path) as gate:
        yield gate
