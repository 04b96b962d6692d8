"""Delivery with channels: a receiver, a session whose messages go there, and what was recorded."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.support.delivery import STREAM, Conversation, conversation, until
from tests.support.receiver import SECRET, Behaviour, Receiver, running_receiver
from tests.support.stack import Stack, running_stack
from vigil.bus.bus import Bus
from vigil.contracts import (
    Attempt,
    DeadLetter,
    Dispatch,
    Receipt,
    decode_attempt,
    decode_dead_letter,
    decode_dispatch,
    decode_receipt,
)
from vigil.subjects import SessionKey
from vigil.worker import requeue
from vigil.worker.requeue import RequeueQuestion, RequeueReply


def channel_of(receiver: Receiver, **settings: Any) -> dict[str, Any]:
    """Configure a channel that leads to `receiver`, with short pauses."""
    return {
        "url": receiver.url(),
        "secret": SECRET,
        "ports": [receiver.port],
        "allow_private": True,
        "timeout_s": 2.0,
        "attempts_max": 3,
        "backoff_base_s": 0.05,
        "backoff_cap_s": 0.2,
        **settings,
    }


@contextlib.asynccontextmanager
async def running_channel(
    home: Path,
    *behaviours: Behaviour,
    services: tuple[str, ...] = ("delivery",),
    **settings: Any,
) -> AsyncIterator[tuple[Stack, Receiver, Conversation]]:
    """A broker, delivery with the channel `ops`, its receiver, and a session."""
    async with running_receiver(*behaviours) as receiver:
        channels = {"ops": channel_of(receiver, **settings)}
        async with running_stack(
            home, services=services, channels=channels, health={"circuit_open_s": 0.05}
        ) as stack:
            yield stack, receiver, conversation(await stack.bus("admin"))


async def orders(bus: Bus, key: SessionKey, effect: str) -> list[Dispatch]:
    return [decode_dispatch(m.data) for m in await bus.read(STREAM, [key.send(effect)])]


async def attempts(bus: Bus, key: SessionKey, effect: str) -> list[Attempt]:
    return [decode_attempt(m.data) for m in await bus.read(STREAM, [key.attempt(effect)])]


async def receipts(bus: Bus, key: SessionKey, effect: str) -> list[Receipt]:
    return [decode_receipt(m.data) for m in await bus.read(STREAM, [key.receipt(effect)])]


async def dead_letters(bus: Bus) -> list[DeadLetter]:
    return [decode_dead_letter(m.data) for m in await bus.read("DEAD", ["dead.delivery.>"])]


async def died(bus: Bus, *, count: int = 1) -> list[DeadLetter]:
    """Wait until there are so many dead letters of delivery, and return them.

    The letter of an order that is given up is stored after its receipt.
    """

    async def have_died() -> bool:
        return len(await dead_letters(bus)) >= count

    await until(have_died, what=f"{count} dead letters")
    return await dead_letters(bus)


async def closed(
    bus: Bus, key: SessionKey, effect: str, *, times: int = 1, within_s: float = 20.0
) -> Receipt:
    """Wait for the receipt of an effect (the `times`-th), and return it."""

    async def is_closed() -> bool:
        return len(await receipts(bus, key, effect)) >= times

    await until(is_closed, within_s=within_s, what=f"a receipt of {effect}")
    return (await receipts(bus, key, effect))[-1]


async def no_orders_left(bus: Bus, *, within_s: float = 20.0) -> None:
    """Wait until delivery has acknowledged every order."""

    async def is_idle() -> bool:
        info = await bus.api(f"CONSUMER.INFO.{STREAM}.delivery-sends", {})
        return bool(info["num_pending"] == 0 and info["num_ack_pending"] == 0)

    await until(is_idle, within_s=within_s, what="all orders acknowledged")


async def wish(bus: Bus, letter: DeadLetter, by: str = "ann") -> RequeueReply:
    """Ask the service of a dead letter to try again, as the gateway does."""
    question = RequeueQuestion(
        letter_id=letter.id, stream=letter.stream, seq=letter.seq, subject=letter.subject, by=by,
        effect_id=letter.effect_id,
    )  # fmt: skip
    subject = requeue.subject_of(letter.service)
    answers = await bus.ask_all(subject, requeue.encode(question), count=1, timeout=10)
    assert len(answers) == 1
    return requeue.decode_reply(answers[0])
