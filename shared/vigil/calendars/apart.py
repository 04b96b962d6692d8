"""Has calendars read by a process of their own (`ical.program`)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

import msgspec

from ..errors import Unavailable
from ..net.conversion import converted
from .edits import EDIT, Edited, ToEdit
from .entries import CalendarObject, CalendarWindow, RawObject, ReadApart, ToRead
from .invitations import INVITATION, Invitation

EDIT_S: Final = 20.0
READ_S: Final = 300.0
"""For one document; a machine that is busy takes its time."""
AT_ONCE: Final = 500
"""Objects that one process reads."""
PROGRAM: Final = ("-m", "vigil.calendars.ical.program")


async def document_apart(data: bytes, window: CalendarWindow) -> ReadApart:
    """Read a document. Raises: Unavailable, it can't be read in time."""
    return await _apart(ToRead(window=window, document=data))


async def objects_apart(
    raws: Sequence[RawObject], window: CalendarWindow
) -> tuple[CalendarObject, ...]:
    """Read objects of a collection. Raises: Unavailable, they can't be read in time."""
    found: list[CalendarObject] = []
    for at in range(0, len(raws), AT_ONCE):
        some = tuple(raws[at : at + AT_ONCE])
        found += (await _apart(ToRead(window=window, objects=some))).objects
    return tuple(found)


async def invitation_apart(data: bytes, window: CalendarWindow) -> Invitation:
    """Read a calendar part of a mail. Raises: Unavailable, it can't be read in time."""
    asked = msgspec.msgpack.encode(ToRead(window=window, document=data))
    answer = await converted(sys.executable, *PROGRAM, INVITATION, data=asked, within_s=EDIT_S)
    if answer is None:
        raise Unavailable("the invitation can't be read in time")
    return msgspec.msgpack.decode(answer, type=Invitation)


async def edited_apart(asked: ToEdit) -> Edited:
    """Make or change an object. Raises: Unavailable, it can't be done in time."""
    data = msgspec.msgpack.encode(asked)
    answer = await converted(sys.executable, *PROGRAM, EDIT, data=data, within_s=EDIT_S)
    if answer is None:
        raise Unavailable("the event can't be written in time")
    return msgspec.msgpack.decode(answer, type=Edited)


async def _apart(asked: ToRead) -> ReadApart:
    data = msgspec.msgpack.encode(asked)
    answer = await converted(sys.executable, *PROGRAM, data=data, within_s=READ_S)
    if answer is None:
        raise Unavailable("what it holds can't be read in time, or takes too much memory")
    return msgspec.msgpack.decode(answer, type=ReadApart)
