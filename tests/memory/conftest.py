"""Fixtures: the engine of the vectors as it is outside of tests."""

from __future__ import annotations

import pytest

from services.memory.vectors import engine_process
from tests.support import engines


@pytest.fixture
def own_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each engine is begun anew, and is found by its command line."""
    monkeypatch.setattr(engine_process, "spawn", engines.begin_anew)
