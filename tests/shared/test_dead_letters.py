"""One way to make a dead letter, with the ids that services gave before there was one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.stack import Stack
from vigil.bus.bus import Ack, Bus, BusError, Message
from vigil.contracts import DEAD_LETTER_BYTES_MAX, DeadLetter, decode_dead_letter
from vigil.errors import OutcomeUnknown, Unavailable
from vigil.observe import metrics
from vigil.observe.metrics import Metrics
from vigil.subjects import SessionKey, token_of
from vigil.worker import dead_letters
from vigil.worker.dead_letters import NOBODY

KEY = SessionKey("ann", "vigil", "t1")
AT = datetime(2026, 3, 1, tzinfo=UTC)


def letter_of(service: str, message: Message, key: SessionKey = KEY) -> DeadLetter:
    return dead_letters.build(service, message, "it's no JSON", key, now=AT)


@pytest.mark.parametrize(
    ("service", "id_"),
    [
        ("cortex", "SESSIONS-7"),
        ("gateway", "SESSIONS-7"),
        ("delivery", "delivery-SESSIONS-7"),
        ("memory", "memory-SESSIONS-7"),
        ("scheduler", f"dead-{token_of('scheduler', 'SESSIONS', '7')}"),
    ],
)
def test_ids_stay_what_they_were(service: str, id_: str) -> None:
    """X-6: what died before an update, and again after it, is one letter."""
    assert letter_of(service, Message(KEY.turn, b"{", {}, 7, stream="SESSIONS")).id == id_


def test_a_letter_keeps_what_died_and_where() -> None:
    message = Message(KEY.turn, b"x" * (DEAD_LETTER_BYTES_MAX + 1), {}, 7, stream="SESSIONS")
    letter = letter_of("memory", message)
    assert (letter.stream, letter.subject, letter.seq) == ("SESSIONS", KEY.turn, 7)
    assert (letter.cause, letter.at, letter.session_key) == ("it's no JSON", AT, "ann:vigil:t1")
    assert len(letter.data) == DEAD_LETTER_BYTES_MAX
    assert letter_of("memory", message, SessionKey("ann", NOBODY, NOBODY)).session_key == ""


async def stored(bus: Bus) -> list[DeadLetter]:
    return [decode_dead_letter(message.data) for message in await bus.read("DEAD", ["dead.>"])]


async def test_a_repeat_is_stored_once_and_two_services_bury_apart(bare: Stack) -> None:
    """X-6: the broker knows ids for a whole stream."""
    cortex, delivery, admin = [await bare.bus(r) for r in ("cortex", "delivery", "admin")]
    message = Message(KEY.turn, b"{", {}, 7, stream="SESSIONS")
    for bus, service in ((cortex, "cortex"), (delivery, "delivery"), (cortex, "cortex")):
        await dead_letters.bury(bus, Metrics(service), letter_of(service, message), message, KEY)
    assert [one.service for one in await stored(admin)] == ["cortex", "delivery"]


async def test_a_letter_is_stored_however_long_that_takes(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RELIABILITY 0.8: answers that never come, a refusal; one letter, counted once."""
    bus, admin = await bare.bus("cortex"), await bare.bus("admin")
    message, counts = Message(KEY.turn, b"{", {}, 7, stream="SESSIONS"), Metrics("cortex")
    faults = [OutcomeUnknown("lost"), BusError(10077, "full"), Unavailable("away")]
    publish = bus.publish

    async def lossy(*args: Any, **how: Any) -> Ack:
        ack = await publish(*args, **how)
        if faults:
            raise faults.pop(0)
        return ack

    monkeypatch.setattr(bus, "publish", lossy)
    await dead_letters.bury(bus, counts, letter_of("cortex", message), message, KEY)
    assert (faults, len(await stored(admin))) == ([], 1)
    assert counts.value(metrics.DEAD_LETTERS) == 1
