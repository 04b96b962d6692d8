"""The streams that signals are projected from. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any, Final

import msgspec

from ..contracts import (
    Signal,
    SignalSource,
    decode_board,
    decode_dead_letter,
    decode_memory,
    decode_slot,
    decode_turn,
)
from ..errors import InvalidInput
from ..layout import InStream, LogLayout, name_of
from ..subjects import (
    ANYBODY,
    BOARD_ALL,
    CLAIMS_OF_ALL_SESSIONS,
    MEMORIES_ALL,
    RECEIPTS_OF_ALL_SESSIONS,
    TURNS_OF_ALL_SESSIONS,
    TURNS_OF_ALL_SYSTEM,
    Scope,
    SessionKey,
    board_of,
    memories_of_all,
    signals_of,
)
from . import board, children, conversations, letters, memories, slots
from .draft import Signals
from .kinds import KINDS, Giver


@cache
def givers_of(stream: str, record: type[object]) -> tuple[Giver, ...]:
    """Return what tells a record of that class, each once, in the order of KINDS."""
    givers = dict.fromkeys(giver for row in KINDS.values() for giver in row.givers)
    return tuple(
        giver for giver in givers if giver.stream == stream and issubclass(record, giver.record)
    )


class Source(InStream, frozen=True, kw_only=True):
    """A stream, and how its records are told."""

    filters: tuple[str, ...]
    """Of the records that give signals."""
    read: Callable[[SignalSource, str, bytes], tuple[Signals, Any]]
    """(source, subject, data) -> the signals to be, and the record. Raises: InvalidInput."""
    dated: str
    """Matches records that tell when they were written, in order."""
    written_at: Callable[[bytes], datetime]
    """When one of those was. Raises: InvalidInput."""

    @property
    def signals(self) -> tuple[str, ...]:
        """Filters of SIGNALS that match the signals of this source and of no other."""
        streams = {
            kind.partition(".")[0]: giver.stream
            for kind, row in KINDS.items()
            for giver in row.givers
        }
        name = name_of(self.stream)
        halves = sorted(half for half, stream in streams.items() if stream == name)
        return tuple(signals_of("*", kind=f"{half}.*") for half in halves)

    def project(self, seq: int, subject: str, data: bytes) -> list[Signal]:
        """Return the signals of a stored record, in order; their ids are the same each time.

        Raises:
            InvalidInput: it's none that gives any, or can't be read.
        """
        signals, record = self.read(SignalSource(stream=self.stream, seq=seq), subject, data)
        kind: Any = type(record)
        givers = givers_of(name_of(self.stream), kind)
        if not givers:
            raise InvalidInput("subject", f"{subject!r} gives no signals")
        for giver in givers:
            giver.derive(signals, record)
        return signals.made


TOLD: Final = (
    "approval",
    "job",
    "use",
    "task",
    "goal",
    "preference",
    "action",
    "circuit",
    "bulletin",
    "facts",
)
"""What of the board gives signals."""
ANYBODY_S_LETTERS: Final = SessionKey("*", "*", "*").dead("gateway")
SOURCES: Final = (
    Source(
        stream="SESSIONS",
        filters=(TURNS_OF_ALL_SESSIONS, CLAIMS_OF_ALL_SESSIONS, RECEIPTS_OF_ALL_SESSIONS),
        read=conversations.read,
        dated=TURNS_OF_ALL_SESSIONS,
        written_at=lambda data: decode_turn(data).created_at,
    ),
    Source(
        stream="MEMORIES",
        filters=tuple(memories_of_all(op) for op in ("save", "merge", "replace", "forget", "undo")),
        read=memories.read,
        dated=MEMORIES_ALL,
        written_at=lambda data: decode_memory(data).at,
    ),
    Source(
        stream="SYSTEM",
        filters=(TURNS_OF_ALL_SYSTEM,),
        read=children.read,
        dated=TURNS_OF_ALL_SYSTEM,
        written_at=lambda data: decode_turn(data).created_at,
    ),
    Source(
        stream="BOARD",
        filters=tuple(board_of(ANYBODY, kind) for kind in TOLD),
        read=board.read,
        dated=BOARD_ALL,
        written_at=lambda data: decode_board(data).at,
    ),
    Source(
        stream="SLOTS",
        filters=(ANYBODY.slot(),),
        read=slots.read,
        dated=ANYBODY.slot(),
        written_at=lambda data: decode_slot(data).at,
    ),
    Source(
        stream="DEAD",
        filters=(ANYBODY_S_LETTERS,),
        read=letters.read,
        dated=ANYBODY_S_LETTERS,
        written_at=lambda data: decode_dead_letter(data).at,
    ),
)


def project(stream: str, seq: int, subject: str, data: bytes) -> list[Signal]:
    """Return the signals of a stored record of a stream. Raises: InvalidInput, as its source."""
    return source_of(stream).project(seq, subject, data)


def source_of(stream: str) -> Source:
    """Return the source that a stream is; of the log, a partition is one."""
    (source,) = (source for source in SOURCES if source.stream == name_of(stream))
    return msgspec.structs.replace(source, stream=stream)


def sources(layout: LogLayout) -> tuple[Source, ...]:
    """Return the sources of an installation: each partition of the log is one."""
    return tuple(each for source in SOURCES for each in layout.each(source))


def place_of(signal: Signal) -> str:
    """Return the subject under which a signal is stored."""
    if signal.session_key is None:
        return Scope(signal.agent, signal.owner).signal(signal.kind)
    user, agent, thread = signal.session_key.split(":")  # checked when the signal was made
    return SessionKey(user, agent, thread).signal(signal.kind)
