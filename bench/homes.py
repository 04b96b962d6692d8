"""What reaches the person from elsewhere: a reader that is started, a report in their home.

The services run in this process with a model that answers at once. Instants are the broker's own,
of when a record was stored.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from bench.instant import Instant, running
from bench.numbers import percentile, report
from services.cortex.model import ModelRequest
from services.executor.work import child_of
from tests.support.stack import Stack
from tests.support.talk import Talk
from tests.support.tree import Tree
from vigil.addressees import is_turn
from vigil.bus.bus import Bus
from vigil.contracts import SpawnSession, ToldEvent, ToldPayload, decode_turn, encode
from vigil.subjects import SessionKey

KEY: Final = SessionKey("me", "vigil", "bench")
READERS, WARM = 60, 5
REPORTS: Final = 500
"""Each to a person of their own, one after the other."""
PATIENCE_S: Final = 60.0
MS: Final = timedelta(milliseconds=1)
AUTONOMY: Final = {"enabled": True, "cooldown_ms": 0, "max_consecutive": 1000}


async def measure(home: Path) -> None:
    """Report both."""
    readers = await _readers(home / "readers")
    report("reader_start_ms", percentile(readers, 50), "ms", p99=percentile(readers, 99))
    told = await _told(home / "told")
    report("told_p99_ms", percentile(told, 99), "ms", p50=percentile(told, 50))


async def _readers(home: Path) -> list[float]:
    """Measure from a turn that asks for a reader, stored, to the reader's first turn, stored.

    The model's answer lies between, which takes no time here.
    """

    def calls(request: ModelRequest) -> list[tuple[str, dict[str, Any]]]:
        is_asked = request.session_key == str(KEY) and request.rows[-1].source == "person"
        return [("research", {"task": "What is new?"})] if is_asked else []

    async with running(home, Instant(calls), memory={"recall_tokens": 0}) as stack:
        talk, tree = await Talk.open(stack, str(KEY)), await Tree.watch(stack)
        for number in range(WARM + READERS):
            await talk.ended(await talk.say(f"message {number}"))
            await tree.until(lambda n=number: tree.are_over("reader", n + 1), PATIENCE_S)  # type: ignore[misc]
        asked = {
            str(child_of(talk.key, effect)): message.stored_at
            for message in talk.log
            if is_turn(message.subject)
            for effect in decode_turn(message.data).effects
            if isinstance(effect, SpawnSession)
        }
        begun = await _first_turns(talk.bus)
        await talk.close()
    took = [(begun[key] - at) / MS for key, at in asked.items()]
    if len(took) != WARM + READERS:
        raise RuntimeError(f"{len(took)} readers were started")
    return took[WARM:]


async def _first_turns(bus: Bus) -> dict[str, datetime]:
    """Return when the first turn of each of the agent's own sessions was stored."""
    first: dict[str, datetime] = {}
    for message in await bus.read("SYSTEM", ["system.>"]):
        if is_turn(message.subject):
            first.setdefault(str(SessionKey.of_subject(message.subject)), message.stored_at)
    return first


async def _told(home: Path) -> list[float]:
    """Measure from a report in a home, stored, to what the person is said, stored."""
    async with running(home, Instant(lambda _: []), autonomy=AUTONOMY) as stack:
        took = [await _one_report(stack, number) for number in range(WARM + REPORTS)]
    return took[WARM:]


async def _one_report(stack: Stack, number: int) -> float:
    """Report something to one of the persons in turn, and wait until it is said."""
    talk = await Talk.open(stack, f"p{number}:vigil:main")
    payload = ToldPayload(origin=str(KEY), text=f"Report {number} is ready.", is_ordered=True)
    event = ToldEvent(
        id=uuid4().hex, session_key=str(talk.key), created_at=datetime.now(UTC), payload=payload
    )
    await talk.store(talk.key.in_event(f"told.{event.id}"), encode(event))
    await talk.until(lambda: talk.said, PATIENCE_S)
    at = {message.subject.split(".")[4]: message.stored_at for message in talk.log}
    await talk.close()
    return (at["out"] - at["in"]) / MS
