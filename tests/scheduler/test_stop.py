"""A stop is heard also if the broker fails in the same moment, and a group tells only of that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.scheduler.__main__ import _be_active
from vigil import runtime
from vigil.errors import LeaseLost, Unavailable, VigilError
from vigil.observe.metrics import Metrics
from vigil.settings import config


class Failing:
    """A term, and a lease, that fail as they are ended."""

    def __init__(self, error: Callable[[], VigilError]) -> None:
        self.has_begun = asyncio.Event()
        self._error = error

    async def run(self, lease: Any) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._part())
            self.has_begun.set()
            await asyncio.Event().wait()

    async def _part(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise self._error()

    async def release(self) -> None:
        raise Unavailable("gone")


@pytest.mark.parametrize("error", [lambda: LeaseLost("scheduler"), lambda: Unavailable("gone")])
async def test_a_term_that_fails_while_it_is_stopped_is_the_last(
    error: Callable[[], VigilError],
) -> None:
    """X-5: or the next one would begin, and nobody would end it any more."""
    failing: Any = Failing(error)
    task = asyncio.create_task(_be_active(failing, failing, Metrics("scheduler", "test")))
    await failing.has_begun.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_service_that_fails_while_it_is_stopped_does_not_begin_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    failing = Failing(lambda: Unavailable("gone"))

    async def run(*_: Any, **__: Any) -> None:
        await failing.run(None)

    monkeypatch.setattr(runtime, "run", run)
    settings = config.load({}, home=tmp_path)
    task = asyncio.create_task(
        runtime.keep_running("delivery", settings, "nats://unused", on_ready=lambda _: None)
    )
    await failing.has_begun.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(20):
            await task
