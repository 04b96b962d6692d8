"""How far SIGNALS got: found in SIGNALS itself, and moved on by appending to it.

Signals are stored in the order of their sources, and only at the end of SIGNALS as the writer
knows it. So the last one tells what is projected: everything up to its source, and of that one
as many signals as there are. There is nothing else to remember, to acknowledge or to lose. A
writer that is refused, or gets no answer, reads the end again and goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from vigil import crash
from vigil.appending import BATCH_MAX, Entry, append, last_sequence
from vigil.bus import Bus, Message
from vigil.contracts import Signal, decode_signal, decode_turn
from vigil.errors import InvalidInput, Unavailable
from vigil.subjects import SIGNALS_ALL, TURNS_OF_ALL_SESSIONS

STREAM: Final = "SIGNALS"
SOURCE: Final = "SESSIONS"
READ_MAX: Final = 2000
"""Signals that are read at the start: more than one record gives, and enough for the windows."""
CLOCKS_APART: Final = timedelta(minutes=5)
"""Between what a replica wrote into a record and when the broker stored it, at most."""


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """Where a projector begins."""

    last: int
    """The last sequence of SIGNALS; the next append expects it."""
    seq: int
    """The first record of SESSIONS to project."""
    done: frozenset[str] = frozenset()
    """Ids of the signals of that record that are stored already."""
    newest: tuple[Signal, ...] = ()
    """The newest signals, oldest first, for whoever wants to know what was before."""


async def find(bus: Bus, oldest: datetime) -> Position:
    """Read the end of SIGNALS.

    Args:
        oldest: what happened before isn't told: if SIGNALS is empty, it begins here.

    Raises:
        BusError, Unavailable: it can't be read.
        InvalidInput: what is in it isn't known here.
    """
    last = await last_sequence(bus, STREAM)
    tail = await bus.read(STREAM, [SIGNALS_ALL], max(last - READ_MAX, 0) + 1)
    read_to = tail[-1].seq if tail else 0
    if read_to < last and await bus.get(STREAM, last) is not None:
        raise Unavailable(f"{STREAM}: its end can't be read yet")
    if not tail:  # much may have been removed
        newest = await bus.get_last(STREAM, SIGNALS_ALL)
        tail = [] if newest is None else [newest]
    if not tail:
        return Position(last=last, seq=await _first_since(bus, oldest - CLOCKS_APART))
    # One that can't be read is of a version from the future: better none than all once more.
    signals = [decode_signal(message.data) for message in tail]
    seq = signals[-1].source.seq
    return Position(
        last=max(last, read_to),
        seq=seq,
        done=frozenset(signal.id for signal in signals if signal.source.seq == seq),
        newest=tuple(signals),
    )


async def _first_since(bus: Bus, oldest: datetime) -> int:
    """Return a sequence of SESSIONS at or before which nothing is as young as `oldest`."""
    newest = await bus.get_last(SOURCE, TURNS_OF_ALL_SESSIONS)
    low, high = 1, 1 if newest is None else newest.seq
    while low < high:
        middle = (low + high) // 2
        turn = await bus.get_next(SOURCE, TURNS_OF_ALL_SESSIONS, middle)
        if turn is None or _is_since(turn, oldest):
            high = middle
        else:
            low = turn.seq + 1
    return low


def _is_since(turn: Message, oldest: datetime) -> bool:
    try:
        return decode_turn(turn.data).created_at >= oldest
    except InvalidInput:
        return True


class Tail:
    """The end of SIGNALS, for the one who writes it."""

    def __init__(self, bus: Bus, position: Position, new_id: Callable[[], str]) -> None:
        self._bus = bus
        self._last = position.last
        self._new_id = new_id

    async def append(self, entries: Sequence[Entry]) -> None:
        """Store signals.

        Raises:
            WrongLastSequence: somebody else writes.
            OutcomeUnknown, Unavailable, BusError: nobody knows what is stored. In all cases
                this tail is of no more use: find the position anew.
        """
        for begin in range(0, len(entries), BATCH_MAX):
            crash.point("cortex.signal.before_publish")
            part = entries[begin : begin + BATCH_MAX]
            self._last = await append(self._bus, part, expect=self._last, batch_id=self._new_id())
            crash.point("cortex.signal.after_publish")
