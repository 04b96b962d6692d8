"""Fixtures: a broker for each test that asks for one (it starts in about 0.15 s)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.stack import Stack, running_stack


@pytest.fixture
async def bare(tmp_path: Path) -> AsyncIterator[Stack]:
    """A provisioned broker with no service running; start what the test is about."""
    async with running_stack(tmp_path, services=()) as stack:
        yield stack
