"""Fixtures: an executor whose tools the test brings along."""

from __future__ import annotations

import pytest

from services.executor import presence, sources
from tests.support import executing
from tests.support.stack import Stack


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The counting tools, and patience that suits a test."""
    monkeypatch.setattr(sources, "start", executing.start)
    executing.limit(monkeypatch)
    monkeypatch.setattr(presence, "JUDGE_AFTER_S", 0.2)


@pytest.fixture
async def stack(bare: Stack, limits: None) -> Stack:
    """A broker and an executor with the counting tools."""
    await bare.start("executor")
    return bare
