"""A message of a stream, as delivered or as read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from ..layout import named
from .wire import header_of, headers_of

_BROKERS: Final = "nats-"
"""What headers begin with that the broker itself reads or writes."""
_LASTING: Final = frozenset({"nats-schedule", "nats-schedule-target", "nats-ttl"})
"""Those of them that say what a record is, and not how it was once written."""


def lasting(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers to store a record with once more.

    The broker keeps all that a record was written with, and takes it for an order when it comes
    again: an expectation, an id that it knows, a part of a batch that nobody ends, a schedule that
    is to be removed since it fired.

    >>> lasting({"mode": "x", "Nats-TTL": "72h", "Nats-Batch-Id": "b", "Nats-Scheduler": "timer.x"})
    {'mode': 'x', 'Nats-TTL': '72h'}
    """
    return {
        name: value
        for name, value in headers.items()
        if not name.lower().startswith(_BROKERS) or name.lower() in _LASTING
    }


class Message:
    """A message of a stream, as delivered or as read. `seq` is its stream sequence."""

    __slots__ = ("_headers", "_reply", "data", "delivered", "pending", "seq", "stream", "subject")

    def __init__(
        self,
        subject: str,
        data: bytes,
        headers: dict[str, str] | bytes,
        seq: int,
        delivered: int = 1,
        pending: int = 0,
        reply: str = "",
        stream: str = "",
    ) -> None:
        self.subject = subject
        self.data = data
        self._headers = headers
        self.seq = seq
        self.delivered = delivered
        """How often it was delivered, this time included."""
        self.pending = pending
        """How many more the consumer had when it sent this one."""
        self._reply = reply
        self.stream = stream
        """Where it is: a partition of the log, for a session's."""

    def __repr__(self) -> str:
        return f"Message({self.subject!r}, seq={self.seq}, {len(self.data)} bytes)"

    @property
    def headers(self) -> dict[str, str]:
        """The headers; those of a delivery are read when somebody asks for them."""
        if isinstance(self._headers, bytes):
            self._headers = headers_of(self._headers)
        return self._headers

    def header(self, name: str) -> str | None:
        """Return one header, by its name as it was written; of a delivery no other is read."""
        if isinstance(self._headers, bytes):
            return header_of(self._headers, name)
        return self._headers.get(name)

    @property
    def token(self) -> str:
        """The acknowledgement subject."""
        return self._reply

    @property
    def stored_at(self) -> datetime:
        """When the broker stored it, by its own clock."""
        return datetime.fromtimestamp(int(_fields(self._reply)[7]) / 1e9, UTC)


class SingleMessage(Message):
    """A message that was asked for by itself, and not delivered by a consumer."""

    __slots__ = ("time",)
    time: str
    """When the broker stored it, as it says that."""

    @property
    def stored_at(self) -> datetime:
        """When the broker stored it, by its own clock."""
        return datetime.fromisoformat(self.time)


def _fields(reply: str) -> list[str]:
    """Split an acknowledgement subject.

    $JS.ACK.<stream>.<consumer>.<delivered>.<sseq>.<cseq>.<ts>.<pending>, or the form with domain
    and account hash in front of the stream (NATS ADR-15).
    """
    tokens = reply.split(".")
    return tokens if len(tokens) <= 9 else tokens[2:]


def from_delivery(
    subject: str, reply: str, data: bytes, headers: bytes
) -> tuple[Message, int, tuple[str, str]]:
    """Parse a delivery -> (message, consumer sequence, stream and name of the consumer)."""
    tokens = _fields(reply)
    message = Message(
        named(subject),
        data,
        headers,
        int(tokens[5]),
        int(tokens[4]),
        int(tokens[8]),
        reply,
        tokens[2],
    )
    return message, int(tokens[6]), (tokens[2], tokens[3])
