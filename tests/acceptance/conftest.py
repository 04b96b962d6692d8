"""Fixtures: worlds with a stopped clock, one with the seed's limits, one without a cooldown."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.world import World, running_world


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """Cap 3 and cooldown 15 s, as the seed has them."""
    async with running_world(tmp_path, monkeypatch) as world:
        yield world


@pytest.fixture
async def brisk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """Cap 3 and no cooldown, for what isn't about it."""
    async with running_world(tmp_path, monkeypatch, autonomy={"cooldown_ms": 0}) as world:
        yield world
