"""Making BOARD whole again after a restore: what it lacks is in the turns (SPEC X-9).

A backup takes BOARD before the turns that it is written from. A turn that the executor carried out
in between is acknowledged in the backup, so nobody would carry it out again. So the backup notes up
to where the executor was through with the turns before it began, and a restore reads those after.
What loops ask for follows only the revision that they read: a person may have changed it since.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from ..bus.bus import Bus, Message
from ..contracts import (
    Approval,
    BoardChange,
    BoardEntry,
    Change,
    Job,
    decode_board,
    decode_turn,
    encode,
)
from ..contracts.board import AskedEntity, BoardPreference
from ..errors import InvalidInput, WrongLastSequence
from ..preferences.confidence import first, taught
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


async def catch_up(bus: Bus, through: Mapping[str, int], period: timedelta) -> int:
    """Store what the turns after `through` say and the board lacks; return how many entries.

    Nobody else may write there. May be repeated.

    Args:
        period: without a confirmation, that takes a little of a preference.

    Raises:
        Unavailable: the broker fell silent; call again.
    """
    count = 0
    for reader in await _readers(bus):
        start, is_more = through.get(reader.stream, 0) + 1, reader.stream in through
        while is_more:
            turns, is_more = await bus.page(reader.stream, reader.filters, start, limit=PAGE)
            for turn in turns:
                for wanted in _entries(turn):
                    count += await _store(bus, wanted, period)
                start = turn.seq + 1
    return count


class _Wanted(msgspec.Struct, frozen=True):
    """An entry that a turn asked for."""

    subject: str
    entry: BoardEntry
    expect: int
    """The revision that it follows; of approvals and jobs it says nothing."""


def _entries(turn: Message) -> Iterator[_Wanted]:
    """Yield what a turn changed on the board; nothing, if it can't be read."""
    with contextlib.suppress(InvalidInput):
        key, record = SessionKey.of_subject(turn.subject), decode_turn(turn.data)
        for effect in record.effects:
            if isinstance(effect, BoardChange):
                payload = effect.payload
                change = None
                if isinstance(payload.entity, AskedEntity):
                    change = Change(by=key.agent, why=payload.why, cause=effect.id)
                for one in payload.parts or (payload.entity,):
                    entry = BoardEntry(
                        entity=one, turn_seq=turn.seq, at=record.created_at, change=change
                    )
                    kind = str(one.__struct_config__.tag)
                    expect = 0 if payload.parts else payload.expect
                    yield _Wanted(key.board(kind, one.id), entry, expect)


async def _store(bus: Bus, wanted: _Wanted, period: timedelta) -> bool:
    """Store an entry unless the board has it, or a newer one."""
    found = await bus.get_last(STREAM, wanted.subject)
    entry = _following(found, wanted, period)
    if entry is None:
        return False
    try:
        await bus.publish(wanted.subject, encode(entry), expect=0 if found is None else found.seq)
    except WrongLastSequence:  # an attempt of ours that was thought to be lost
        return False
    return True


def _following(found: Message | None, wanted: _Wanted, period: timedelta) -> BoardEntry | None:
    """Return the entry to store; None: none."""
    entry, lesson = wanted.entry, wanted.entry.entity
    if isinstance(lesson, Approval | Job):
        return entry if found is None or _turn_of(found) < entry.turn_seq else None
    entry = replace(entry, turn_seq=0)
    if not isinstance(lesson, BoardPreference):
        return entry if wanted.expect == (0 if found is None else found.seq) else None
    if found is None:
        return replace(entry, entity=first(lesson))
    before = _preference(found)
    if before is None or {one.cause for one in before.learned_from} & {
        one.cause for one in lesson.learned_from
    }:
        return None
    return replace(entry, entity=taught(before, lesson, period))


def _preference(found: Message) -> BoardPreference | None:
    with contextlib.suppress(InvalidInput):
        entity = decode_board(found.data).entity
        return entity if isinstance(entity, BoardPreference) else None
    return None


def _turn_of(found: Message) -> int:
    try:
        return decode_board(found.data).turn_seq
    except InvalidInput:
        return 0
