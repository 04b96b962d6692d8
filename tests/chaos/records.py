"""What the clients wrote down themselves, and whether the log agrees. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from tests.chaos.history import Histories, SessionLog
from vigil.contracts import UserMessage

CURSOR_PATIENCE_S: Final = 5.0
"""A cursor acknowledged so long before a connection ended must have been stored."""


class Sent(msgspec.Struct, kw_only=True):
    """A message as the client tried to send it. Instants are monotonic seconds."""

    text: str
    idempotency_key: str
    sent_at_s: float
    tries: int = 0
    accepted_at_s: float | None = None
    event_id: str = ""
    seq: int = 0
    answered_at_s: float | None = None


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """A message as it came over the socket, and was acknowledged at once."""

    connection: int
    id: str
    cursor: int
    text: str
    caused_by: str
    at_s: float
    tag: str | None = None


class Records(msgspec.Struct, kw_only=True):
    """Everything one client knows."""

    session: str
    sent: list[Sent] = []
    received: list[Received] = []
    closed_at_s: dict[int, float] = {}
    """When each connection ended."""
    refusals: list[str] = []
    """Answers that no client should get: neither accepted nor "try again"."""


def check_records(histories: Histories, clients: list[Records]) -> list[str]:
    """Return every contradiction between what clients know and the log."""
    found: list[str] = []
    for records in clients:
        log = histories.of(records.session)
        for check in CHECKS:
            found += [f"{v[:2]} {records.session}:{v[2:]}" for v in check(log, records)]
        found += [f"X6 {records.session}: {refusal}" for refusal in records.refusals]
    return found


def accepted_is_stored(log: SessionLog, records: Records) -> Iterator[str]:
    """I3: what got a 202 is in the log, folded, in the order in which it was sent."""
    last = 0
    for sent in records.sent:
        if sent.accepted_at_s is None:
            continue
        event = log.events.get(sent.seq)
        if event is None or event.id != sent.event_id:
            yield f"I3 the accepted {sent.event_id} ({sent.text!r}) is not at {sent.seq}"
        if sent.seq > log.state.position:
            yield f"I3 the accepted {sent.event_id} is not folded"
        if sent.seq <= last:
            yield f"I3 {sent.event_id} lies at {sent.seq}, before what was accepted earlier"
        last = sent.seq


def only_what_was_sent_is_stored(log: SessionLog, records: Records) -> Iterator[str]:
    """I2: however often a message was posted, it is in the log under one id."""
    ids: dict[str, set[str]] = {sent.text: set() for sent in records.sent}
    for seq in log.people:
        event = log.events[seq]
        if not isinstance(event, UserMessage) or event.payload.text not in ids:
            yield f"I2 the message at {seq} was sent by nobody"
        else:
            ids[event.payload.text].add(event.id)
    for text, known in ids.items():
        if len(known) > 1:
            yield f"I2 {text!r} was stored under {len(known)} ids"


def received_is_said(log: SessionLog, records: Records) -> Iterator[str]:
    """I5: the client got all that was said, and nothing else."""
    said = {stored.record.id: stored for stored in log.said}
    got = {received.id for received in records.received}
    for effect_id, stored in said.items():
        if effect_id not in got:
            yield f"I5 the client never got {effect_id}, said at {stored.seq}"
    for received in records.received:
        source = said.get(received.id)
        if source is None:
            yield f"I5 the client got {received.id}, which was not said"
        elif (source.seq, source.record.text) != (received.cursor, received.text):
            yield f"I5 the client got another {received.id} than was said"


def arrivals_are_in_order(log: SessionLog, records: Records) -> Iterator[str]:
    """I5: within a connection cursors rise, and what is new comes after all that came."""
    highest, last, connection = 0, 0, -1
    known: set[int] = set()
    for received in records.received:
        if received.connection != connection:
            connection, last = received.connection, 0
        if received.cursor <= last:
            yield f"I5 cursor {received.cursor} came after {last} on one connection"
        last = received.cursor
        if received.cursor not in known and received.cursor < highest:
            yield f"I5 {received.cursor} came for the first time after {highest}"
        known.add(received.cursor)
        highest = max(highest, received.cursor)


def no_repeats(log: SessionLog, records: Records) -> Iterator[str]:
    """I5: what was acknowledged long before a connection ended does not come again."""
    acked_at: dict[int, tuple[int, float]] = {}
    for received in records.received:
        before = acked_at.get(received.cursor)
        if before is not None:
            connection, at_s = before
            closed_s = records.closed_at_s.get(connection, at_s)
            if closed_s - at_s > CURSOR_PATIENCE_S:
                yield (
                    f"I5 {received.cursor} came again, acknowledged {closed_s - at_s:.1f} s "
                    "before its connection ended"
                )
        acked_at[received.cursor] = (received.connection, received.at_s)


CHECKS: Final = (
    accepted_is_stored,
    only_what_was_sent_is_stored,
    received_is_said,
    arrivals_are_in_order,
    no_repeats,
)


def recovery_s(clients: list[Records], kill_at_s: float) -> float:
    """Return how long after a kill the last exchange that it interrupted was answered."""
    return max(
        (
            sent.answered_at_s - kill_at_s
            for records in clients
            for sent in records.sent
            if sent.answered_at_s is not None and sent.sent_at_s < kill_at_s < sent.answered_at_s
        ),
        default=0.0,
    )
