"""Making BOARD whole again after a restore: what it lacks is in the turns (SPEC X-9).

A backup takes BOARD before the turns that it is written from. A turn that the executor carried out
in between is acknowledged in the backup, so nobody would carry it out again. So the backup notes up
to where the executor was through with the turns before it began, and a restore reads those after.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Final

from ..bus.bus import Bus, Message
from ..contracts import BoardChange, BoardEntry, decode_board, decode_turn, encode
from ..errors import InvalidInput, WrongLastSequence
from ..subjects import SessionKey
from ..topology import EXECUTOR_TURNS, EXECUTOR_TURNS_SYSTEM, Consumer

STREAM: Final = "BOARD"
READERS: Final = (EXECUTOR_TURNS, EXECUTOR_TURNS_SYSTEM)
PAGE: Final = 500
"""Turns that are in memory at a time."""


async def floors(bus: Bus) -> dict[str, int]:
    """Return, by stream, the sequence up to which every turn is on the board. Raises: BusError."""
    found: dict[str, int] = {}
    for reader in await _readers(bus):
        info = await bus.api(f"CONSUMER.INFO.{reader.stream}.{reader.name}", {})
        found[reader.stream] = info["ack_floor"]["stream_seq"]
    return found


async def _readers(bus: Bus) -> list[Consumer]:
    layout = await bus.layout()
    return [each for reader in READERS for each in layout.each(reader)]


async def catch_up(bus: Bus, through: Mapping[str, int]) -> int:
    """Store what the turns after `through` say and the board lacks; return how many entries.

    Nobody else may write there. May be repeated.

    Raises:
        Unavailable: the broker fell silent; call again.
    """
    count = 0
    for reader in await _readers(bus):
        start, is_more = through.get(reader.stream, 0) + 1, reader.stream in through
        while is_more:
            turns, is_more = await bus.page(reader.stream, reader.filters, start, limit=PAGE)
            for turn in turns:
                for subject, entry in _entries(turn):
                    count += await _store(bus, subject, entry)
                start = turn.seq + 1
    return count


def _entries(turn: Message) -> Iterator[tuple[str, BoardEntry]]:
    """Yield what a turn changed on the board, and where; nothing, if it can't be read."""
    with contextlib.suppress(InvalidInput):
        key, record = SessionKey.of_subject(turn.subject), decode_turn(turn.data)
        for effect in record.effects:
            if isinstance(effect, BoardChange):
                entity = effect.payload.entity
                kind = str(entity.__struct_config__.tag)
                entry = BoardEntry(entity=entity, turn_seq=turn.seq, at=record.created_at)
                yield key.board(kind, entity.id), entry


async def _store(bus: Bus, subject: str, entry: BoardEntry) -> bool:
    """Store an entry unless the board has it, or a newer one."""
    found = await bus.get_last(STREAM, subject)
    if found is not None and _turn_of(found) >= entry.turn_seq:
        return False
    try:
        await bus.publish(subject, encode(entry), expect=0 if found is None else found.seq)
    except WrongLastSequence:  # an attempt of ours that was thought to be lost
        return False
    return True


def _turn_of(found: Message) -> int:
    try:
        return decode_board(found.data).turn_seq
    except InvalidInput:
        return 0
