"""Repeating until the broker has confirmed it: pauses, limits, a broker that is really cut off."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.stack import Stack
from vigil.backoff import Backoff
from vigil.bus.bus import BusError
from vigil.errors import InvalidInput, OutcomeUnknown, Unavailable, VigilError
from vigil.subjects import SessionKey
from vigil.worker.patience import ANY, Patience

ROOT = Path(__file__).parents[2]
KEY = SessionKey("ann", "vigil", "t1")
DOUBLING = re.compile(r"min\([^\n]*(?:\* *2\b|\b2 *\*|<<)|\*\* *\(?\w+ - 1|\*= *2\b")
"""What a pause that doubles looks like."""


class Failing:
    """Fails as told, then succeeds; notes the pauses."""

    def __init__(self, *failures: VigilError) -> None:
        self._failures = list(failures)
        self.pauses: list[float] = []

    async def work(self) -> str:
        if self._failures:
            raise self._failures.pop(0)
        return "done"

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def patience(self, **how: Any) -> Patience:
        return Patience(None, Backoff(1.0, 3.0), sleep=self.sleep, **how)


async def test_pauses_double_up_to_the_longest() -> None:
    failing = Failing(*[Unavailable("away")] * 4)
    assert await failing.patience().run(failing.work) == "done"
    assert failing.pauses == [1.0, 2.0, 3.0, 3.0]


async def test_what_is_not_named_is_raised_at_once() -> None:
    failing = Failing(InvalidInput("text", "is missing"))
    with pytest.raises(InvalidInput):
        await failing.patience().run(failing.work)
    refused = Failing(BusError(400, "no"))
    with pytest.raises(BusError):
        await refused.patience().run(refused.work)
    assert failing.pauses == refused.pauses == []
    once = Failing(BusError(400, "no"), Unavailable("away"))
    assert await once.patience(errors=ANY).run(once.work) == "done"


async def test_retries_are_counted_over_everything_that_one_attempt_does() -> None:
    failing = Failing(*[Unavailable("away")] * 3)
    patience = failing.patience(retries_max=3)
    await patience.run(failing.work)
    with pytest.raises(Unavailable, match="once more"):
        await patience.after(Unavailable("once more"))
    assert failing.pauses == [1.0, 2.0, 3.0]


async def test_what_is_over_is_raised() -> None:
    failing = Failing(Unavailable("first"), Unavailable("second"))
    over = iter([False, True])
    with pytest.raises(Unavailable, match="second"):
        await failing.patience(is_over=lambda: next(over)).run(failing.work)


@pytest.mark.usefixtures("own_broker")
async def test_a_write_outlasts_a_broker_that_is_cut_off(bare: Stack) -> None:
    """A broker that stands still confirms nothing; what it had taken isn't stored twice."""
    bus, admin = await bare.bus("gateway"), await bare.bus("admin")
    failures: list[float] = []
    await bare.broker.pause()

    async def sleep(seconds: float) -> None:
        failures.append(seconds)
        await bare.broker.unpause()
        await asyncio.sleep(0)

    async def write() -> int:
        ack = await bus.publish(KEY.in_user, b"{}", msg_id="one", timeout=0.5)
        return ack.seq

    patience = Patience(None, errors=(OutcomeUnknown,), sleep=sleep)
    assert await patience.run(write) == await patience.run(write)
    assert failures, "the first try went unanswered"
    assert len(await admin.read(KEY.stream, [KEY.in_user])) == 1


def test_nobody_else_doubles_a_pause() -> None:
    """One backoff: a second one is a second place to get its limits wrong."""
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for folder in ("shared", "services")
        for path in (ROOT / folder).rglob("*.py")
        if path.name != "backoff.py"
        for line in path.read_text().splitlines()
        if DOUBLING.search(line) and ("_s" in line or "delay" in line or "sleep" in line)
    ]
    assert found == []
