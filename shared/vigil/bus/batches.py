"""Appending to a stream of which one writer at a time is the author.

Every append names the stream's last sequence, so a writer that doesn't know the end of the
stream is refused, however late its message arrives: after a pause, from a connection that was
thought lost, from a replica that has been replaced. What was already stored is never stored
again, and no message id has to be remembered by the broker.

Few messages go one by one, each when the one before it is stored: with several in flight, a
later one could be accepted after the first was refused, when the stream ends by chance where it
expects. Many go as one atomic batch (NATS ADR-50): it costs four syncs instead of one for each
message, but some milliseconds of its own (ADR 11 has the figures).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from .bus import EXPECT_SEQ, Bus
from .replies import decode_reply, refusal

EXPECT_LAST: Final = "Nats-Expected-Last-Sequence"
BATCH_ID: Final = "Nats-Batch-Id"
BATCH_SEQUENCE: Final = "Nats-Batch-Sequence"
BATCH_COMMIT: Final = "Nats-Batch-Commit"
BATCH_MIN: Final = 16
"""From so many messages on a batch takes less of the broker's time than one by one."""
BATCH_MAX: Final = 1000
"""What the broker allows in one batch."""
TIMEOUT_S: Final = 5.0
TTL: Final = "Nats-TTL"
"""Header that ends a message by itself, if its stream allows that."""


class BatchEntry(msgspec.Struct, frozen=True, gc=False):
    """A message to store."""

    subject: str
    data: bytes
    headers: dict[str, str]


class Replacement(BatchEntry, frozen=True, gc=False):
    """A message that replaces the last one of its subject."""

    expect: int
    """That one's sequence; 0: there is none."""


async def last_sequence(bus: Bus, stream: str, timeout: float = 5.0) -> int:
    """Return the sequence that the stream gave last, also if that message is gone.

    `timeout` is in seconds. Raises: Unavailable, BusError.
    """
    info = await bus.api(f"STREAM.INFO.{stream}", {}, timeout)
    seq: int = info["state"]["last_seq"]
    return seq


async def append(bus: Bus, entries: Sequence[BatchEntry], *, expect: int, batch_id: str) -> int:
    """Store `entries` at the end of their stream, in order; returns the sequence of the last.

    Args:
        entries: 1..`BATCH_MAX`, all for one stream.
        expect: the stream's last sequence.
        batch_id: a new one for each call, at most 64 characters.

    Raises:
        WrongLastSequence: somebody else wrote, or an earlier append of ours came after all.
        OutcomeUnknown: no answer. As with the other errors, none, some or all may be stored:
            read the end of the stream, and go on from there.
        BusError, Unavailable: the broker refused, or is away.
    """
    if len(entries) < BATCH_MIN:
        return await _one_by_one(bus, entries, expect)
    return await _as_batch(bus, entries, expect, batch_id)


async def change_all(bus: Bus, changes: Sequence[Replacement], *, batch_id: str) -> list[int]:
    """Replace the last messages of some subjects of a stream: all of them or none.

    Returns the sequence of each. It is one exchange: the commit tells of whatever was wrong.

    Args:
        changes: 2..`BATCH_MAX`, each of another subject.
        batch_id: a new one for each call, at most 64 characters.

    Raises:
        WrongLastSequence: another write of one of them came first.
        OutcomeUnknown: no answer; all of it or nothing is stored.
        BusError, Unavailable: the broker refused, or is away.
    """
    for number, change in enumerate(changes, start=1):
        headers = change.headers | {
            BATCH_ID: batch_id,
            BATCH_SEQUENCE: str(number),
            EXPECT_SEQ: str(change.expect),
        }
        if number < len(changes):
            await bus.connection.publish(change.subject, change.data, headers=headers)
        else:
            last = BatchEntry(change.subject, change.data, headers)
            seq = await _ask(bus, last, {BATCH_COMMIT: "1"})
    return list(range(seq - len(changes) + 1, seq + 1))


async def _one_by_one(bus: Bus, entries: Sequence[BatchEntry], expect: int) -> int:
    for entry in entries:
        headers = entry.headers | {EXPECT_LAST: str(expect)}
        ack = await bus.publish(entry.subject, entry.data, headers, timeout=TIMEOUT_S)
        expect = ack.seq
    return expect


async def _as_batch(bus: Bus, entries: Sequence[BatchEntry], expect: int, batch_id: str) -> int:
    headers = {BATCH_ID: batch_id}
    first, last = entries[0], entries[-1]
    await _ask(bus, first, headers | {BATCH_SEQUENCE: "1", EXPECT_LAST: str(expect)})
    for number, entry in enumerate(entries[1:-1], start=2):
        # Not answered one by one: the commit tells of whatever was wrong or is missing.
        await bus.connection.publish(
            entry.subject,
            entry.data,
            headers=entry.headers | headers | {BATCH_SEQUENCE: str(number)},
        )
    commit = {BATCH_SEQUENCE: str(len(entries)), BATCH_COMMIT: "1"}
    return await _ask(bus, last, headers | commit)


async def _ask(bus: Bus, entry: BatchEntry, headers: dict[str, str]) -> int:
    """Publish a message of a batch and wait for the answer: empty for all but the last."""
    answer = await bus._request(entry.subject, entry.data, entry.headers | headers, TIMEOUT_S)
    if not answer:
        return 0
    reply = decode_reply(answer)
    if reply.error is not None:
        raise refusal(entry.subject, reply.error)
    return reply.seq
