"""A question to the model that the session never comes to ask (SPEC S-12)."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path
from typing import Any

import pytest

from services.cortex.session import log as session_log
from tests.support.world import running_world
from vigil.clock import SystemClock
from vigil.errors import Unavailable


@pytest.mark.usefixtures("halved_times")
async def test_what_is_not_asked_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker goes away between the question and its asking: the message is answered later."""
    look, calls = session_log.has_more_events, 0

    async def away_once(*given: Any) -> bool:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise Unavailable("away for a moment")
        return await look(*given)

    monkeypatch.setattr(session_log, "has_more_events", away_once)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        async with running_world(tmp_path, monkeypatch, SystemClock(), False) as world:
            person = await world.person("ann:vigil:t1", has_socket=False)
            await person.exchange("hello")
        gc.collect()
    assert calls > 1
    assert [str(one.message) for one in told if "never awaited" in str(one.message)] == []
