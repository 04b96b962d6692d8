"""The streams that signals are projected from. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec

from vigil.contracts import Signal, decode_board, decode_memory, decode_turn
from vigil.contracts.signal_kinds import KINDS
from vigil.subjects import (
    BOARD_ALL,
    CLAIMS_OF_ALL_SESSIONS,
    MEMORIES_ALL,
    RECEIPTS_OF_ALL_SESSIONS,
    TURNS_OF_ALL_SESSIONS,
    TURNS_OF_ALL_SYSTEM,
    Scope,
    SessionKey,
    memories_of_all,
    signals_of,
)

from . import board, children, memories, projection

_OF_MEMORIES: Final = frozenset({"memory"})
"""The first half of the kinds that records of MEMORIES give; they give no others. The same below:
a kind is of one source alone, so that its last signal tells how far that source is told."""
_OF_SYSTEM: Final = frozenset(children.KINDS_TOLD)
_OF_BOARD: Final = frozenset({"approval", "job"})


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A stream, and how its records are told."""

    stream: str
    filters: tuple[str, ...]
    """Of the records that give signals."""
    project: Callable[[str, int, str, bytes], list[Signal]]
    """(stream, sequence, subject, data) -> signals. Raises: InvalidInput."""
    dated: str
    """Matches records that tell when they were written, in order."""
    written_at: Callable[[bytes], datetime]
    """When one of those was. Raises: InvalidInput."""
    signals: tuple[str, ...]
    """Filters of SIGNALS that match the signals of this source and of no other."""


def _signals_about(halves: frozenset[str]) -> tuple[str, ...]:
    return tuple(signals_of("*", kind=f"{half}.*") for half in sorted(halves))


_HALVES: Final = frozenset(kind.partition(".")[0] for kind in KINDS)
SOURCES: Final = (
    Source(
        stream="SESSIONS",
        filters=(TURNS_OF_ALL_SESSIONS, CLAIMS_OF_ALL_SESSIONS, RECEIPTS_OF_ALL_SESSIONS),
        project=projection.project,
        dated=TURNS_OF_ALL_SESSIONS,
        written_at=lambda data: decode_turn(data).created_at,
        signals=_signals_about(_HALVES - _OF_MEMORIES - _OF_SYSTEM - _OF_BOARD),
    ),
    Source(
        stream="MEMORIES",
        filters=tuple(memories_of_all(op) for op in ("save", "merge", "forget", "undo")),
        project=memories.project,
        dated=MEMORIES_ALL,
        written_at=lambda data: decode_memory(data).at,
        signals=_signals_about(_OF_MEMORIES),
    ),
    Source(
        stream="SYSTEM",
        filters=(TURNS_OF_ALL_SYSTEM,),
        project=children.project,
        dated=TURNS_OF_ALL_SYSTEM,
        written_at=lambda data: decode_turn(data).created_at,
        signals=_signals_about(_OF_SYSTEM),
    ),
    Source(
        stream="BOARD",
        filters=(BOARD_ALL,),
        project=board.project,
        dated=BOARD_ALL,
        written_at=lambda data: decode_board(data).at,
        signals=_signals_about(_OF_BOARD),
    ),
)


def place_of(signal: Signal) -> str:
    """Return the subject under which a signal is stored."""
    if signal.session_key is None:
        return Scope(signal.agent, signal.owner).signal(signal.kind)
    return SessionKey.parse(signal.session_key).signal(signal.kind)
