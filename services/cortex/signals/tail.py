"""How far SIGNALS got: found in SIGNALS itself, and moved on by appending to it.

The signals of one source are stored in the order of its records, those of one record without any
other between them, and only at the end of SIGNALS as the writer knows it. So the last signal of a
source tells what of that source is projected: everything up to its record; and of that one all,
unless it is the very last signal there is, whose record may be told in part. That signal may be far
back, and nothing in a subject says of which partition of the log it tells: so with what is appended
a header goes that says how far each source had been told before. There is nothing else to remember,
to acknowledge or to lose. A writer that is refused, or gets no answer, reads the end again and goes
on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from vigil import crash
from vigil.bus.batches import BATCH_MAX, BatchEntry, append, last_sequence
from vigil.bus.bus import Bus, Message
from vigil.contracts import Signal, SignalSource, decode_signal
from vigil.errors import InvalidInput, Unavailable
from vigil.signals.sources import Source, sources
from vigil.subjects import SIGNALS_ALL

STREAM: Final = "SIGNALS"
READ_MAX: Final = 2000
"""Signals that are read at the start: more than one record gives, and enough for the windows."""
TOLD: Final = "Vigil-Told"
"""The header: ``SESSIONS=7 SYSTEM=3``, the last record of each source before these signals."""
CLOCKS_APART: Final = timedelta(minutes=5)
"""Between what a replica wrote into a record and when the broker stored it, at most."""


class Half(msgspec.Struct, frozen=True, kw_only=True):
    """The record that was told last; perhaps not all of it is."""

    stream: str
    seq: int
    done: frozenset[str]
    """Ids of its signals that are stored."""


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """Where a projector begins."""

    last: int
    """The last sequence of SIGNALS; the next append expects it."""
    begins: dict[str, int]
    """The first record of each source to project, by stream."""
    half: Half | None = None
    """To be completed before anything else is told."""
    newest: tuple[Signal, ...] = ()
    """The newest signals, oldest first, for whoever wants to know what was before."""


async def find(bus: Bus, oldest: datetime) -> Position:
    """Read the end of SIGNALS.

    Args:
        oldest: what happened before isn't told: where a source has no signal, it begins here.

    Raises:
        BusError, Unavailable: it can't be read.
        InvalidInput: what is in it isn't known here.
    """
    last, layout = await last_sequence(bus, STREAM), await bus.layout()
    tail = await _tail(bus, last, is_told_by_header=layout.partitions > 1)
    read_to = tail[-1].seq if tail else 0
    if read_to < last and await bus.get(STREAM, last) is not None:
        raise Unavailable(f"{STREAM}: its end can't be read yet")
    # One that can't be read is of a version from the future: better none than all once more.
    signals = [decode_signal(message.data) for message in tail]
    header = next(filter(None, (message.header(TOLD) for message in reversed(tail))), "")
    before = _decoded(header)
    newest = {signal.source.stream: signal.source.seq for signal in signals}
    begins = {
        source.stream: max(newest[source.stream], before.get(source.stream, 0)) + 1
        if source.stream in newest
        else await _begin(bus, source, before.get(source.stream, 0), oldest)
        for source in sources(layout)
    }
    return Position(
        last=max(last, read_to),
        begins=begins,
        half=_half(signals),
        newest=tuple(signals),
    )


async def _tail(bus: Bus, last: int, *, is_told_by_header: bool) -> list[Message]:
    """Return the newest messages, oldest first: `READ_MAX` of them, or as many as are needed.

    Args:
        is_told_by_header: one with the header must be among them, if there is any. What was erased
            leaves gaps.
    """
    count = READ_MAX
    while True:
        tail = await bus.read(STREAM, [SIGNALS_ALL], max(last - count, 0) + 1)
        if count >= last or any(TOLD in message.headers for message in tail):
            return tail
        if not is_told_by_header:
            newest = None if tail else await bus.get_last(STREAM, SIGNALS_ALL)
            return tail if newest is None else [newest]
        count *= 4


def _half(signals: Sequence[Signal]) -> Half | None:
    if not signals:
        return None
    last = signals[-1].source
    done = frozenset(signal.id for signal in signals if signal.source == last)
    return Half(stream=last.stream, seq=last.seq, done=done)


def _encoded(emitted: Mapping[str, int]) -> str:
    """
    >>> _encoded({"SYSTEM": 3, "SESSIONS": 7}), _decoded("SESSIONS=7 SYSTEM=3")
    ('SESSIONS=7 SYSTEM=3', {'SESSIONS': 7, 'SYSTEM': 3})
    """
    return " ".join(f"{stream}={seq}" for stream, seq in sorted(emitted.items()))


def _decoded(text: str) -> dict[str, int]:
    pairs = (one.partition("=") for one in text.split())
    return {stream: int(seq) for stream, _, seq in pairs}


async def _begin(bus: Bus, source: Source, emitted: int, oldest: datetime) -> int:
    """Return the first record that isn't told of a source that none of the newest signals is of.

    Args:
        told: the last that was told, as the header says; 0: none, or older versions told it.
    """
    by_kind = [one.source for one in await _last_emitted(bus, source)]
    if seqs := [one.seq for one in by_kind if one.stream == source.stream]:
        return max(emitted, *seqs) + 1
    return max(emitted + 1, await _first_since(bus, source, oldest - CLOCKS_APART))


async def _last_emitted(bus: Bus, source: Source) -> list[Signal]:
    """Return the last signal of each half of the source's kinds, however long ago."""
    found = [await bus.get_last(STREAM, filter_) for filter_ in source.signals]
    return [decode_signal(message.data) for message in found if message is not None]


async def _first_since(bus: Bus, source: Source, oldest: datetime) -> int:
    """Return a sequence of a source at or before which nothing is as young as `oldest`."""
    newest = await bus.get_last(source.stream, source.dated)
    low, high = 1, 1 if newest is None else newest.seq
    while low < high:
        middle = (low + high) // 2
        record = await bus.get_next(source.stream, source.dated, middle)
        if record is None or _is_since(source, record, oldest):
            high = middle
        else:
            low = record.seq + 1
    return low


def _is_since(source: Source, record: Message, oldest: datetime) -> bool:
    try:
        return source.written_at(record.data) >= oldest
    except InvalidInput:
        return True


class SignalTail:
    """The end of SIGNALS, for the one who writes it."""

    def __init__(self, bus: Bus, position: Position, new_id: Callable[[], str]) -> None:
        self._bus = bus
        self._last = position.last
        self._told = {stream: begin - 1 for stream, begin in position.begins.items()}
        self._new_id = new_id

    async def append(self, entries: Sequence[tuple[SignalSource, BatchEntry]]) -> None:
        """Store signals, each with the record that it tells of.

        Raises:
            WrongLastSequence: somebody else writes.
            OutcomeUnknown, Unavailable, BusError: nobody knows what is stored. In all cases
                this tail is of no more use: find the position anew.
        """
        for begin in range(0, len(entries), BATCH_MAX):
            crash.point("cortex.signal.before_publish")
            part = entries[begin : begin + BATCH_MAX]
            batch = [entry for _, entry in part]
            headers = batch[0].headers | {TOLD: _encoded(self._told)}
            batch[0] = msgspec.structs.replace(batch[0], headers=headers)
            self._last = await append(self._bus, batch, expect=self._last, batch_id=self._new_id())
            self._told |= {source.stream: source.seq for source, _ in part}
            crash.point("cortex.signal.after_publish")
