"""What SIGNALS should hold, what it holds, and projectors of one's own."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterable

from tests.support.pauses import pauses
from tests.support.stack import Stack
from vigil.bus.bus import Bus, Message
from vigil.clock import SystemClock, new_id
from vigil.contracts import Signal, decode_signal
from vigil.errors import InvalidInput, Unavailable
from vigil.layout import name_of
from vigil.observe.metrics import Metrics
from vigil.runtime import Context
from vigil.signals.sources import project, sources

WAIT_S = 15.0


def expected_of(records: Iterable[Message]) -> list[str]:
    """Return the ids of the signals that records of streams give, in order."""
    found: list[str] = []
    for record in records:
        try:
            signals = project(record.stream, record.seq, record.subject, record.data)
        except InvalidInput:
            continue
        found += [signal.id for signal in signals]
    return found


async def expected(bus: Bus, *streams: str) -> list[str]:
    """Return the ids of the signals of all that is stored now: of each stream in its order."""
    return [
        one
        for source in sorted(sources(await bus.layout()), key=lambda source: source.stream)
        if not streams or name_of(source.stream) in streams
        for one in expected_of(await bus.read(source.stream, source.filters))
    ]


def ids_by_source(signals: Iterable[Signal]) -> list[str]:
    """Return the ids of signals as `expected` does: source after source."""
    return [one.id for one in sorted(signals, key=lambda one: one.source.stream)]


async def stored(bus: Bus) -> list[Signal]:
    """Return what is in SIGNALS, in order."""
    return [decode_signal(message.data) for message in await bus.read("SIGNALS", ["signal.>"])]


async def settled(bus: Bus) -> list[Signal]:
    """Wait until everything is projected; return the signals.

    Raises:
        TimeoutError: it is not within `WAIT_S`.
    """
    async with asyncio.timeout(WAIT_S):
        pause_s = pauses()
        while True:
            with contextlib.suppress(Unavailable):
                signals = await stored(bus)
                if set(await expected(bus)) <= {signal.id for signal in signals}:
                    return signals
            await asyncio.sleep(next(pause_s))


def wrong(expected: list[str], signals: list[Signal]) -> list[str]:
    """Say which signals are missing, or there more than once, or nobody's; nothing: all is well."""
    found = Counter(signal.id for signal in signals)
    wanted = set(expected)
    missing = [f"C4 missing: {one}" for one in wanted if one not in found]
    twice = [f"C4 {count} times: {one}" for one, count in found.items() if count > 1]
    strange = [f"C4 without a cause: {one}" for one in found if one not in wanted]
    return missing + twice + strange


async def context_of(stack: Stack, name: str) -> Context:
    """Return what a projector stands on."""
    return Context(
        service="cortex",
        settings=stack.settings,
        bus=await stack.bus("cortex"),
        clock=SystemClock(),
        new_id=new_id,
        ready=asyncio.Event(),
        instance=name,
        metrics=Metrics("cortex"),
    )
