"""Reads calendars as a process of its own: what strangers write takes its time and its memory only.

Also because `icalendar` keeps zones by their names for a whole process. `vigil.calendars.apart`
runs it.
"""

from __future__ import annotations

import contextlib
import resource
import signal
import sys
from collections.abc import Iterator
from typing import Final

import msgspec

from ..edits import EDIT, Edited, ToEdit
from ..entries import ReadApart, ToRead
from ..invitations import INVITATION, Invitation
from .event_changes import edited
from .invitation_part import read_invitation
from .objects import NotCalendar, TooSlow, read_document, read_objects

OBJECT_CPU_S: Final = 3.0
"""For one object."""
MEMORY_BYTES_MAX: Final = 2 * 1024**3


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Give what is done within so much processor time."""

    def end(_number: int, _frame: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, OBJECT_CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def read(asked: ToRead) -> ReadApart:
    """Read it. What it's made of is told in words."""
    try:
        if asked.document is None:
            objects = tuple(read_objects(asked.objects, asked.window, limited))
            return ReadApart(objects=objects)
        return read_document(asked.document, asked.window, limited)
    except NotCalendar as error:
        return ReadApart(problem=str(error))


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    data = sys.stdin.buffer.read()
    found: ReadApart | Edited | Invitation
    if sys.argv[1:] == [EDIT]:
        found = edited(msgspec.msgpack.decode(data, type=ToEdit))
    elif sys.argv[1:] == [INVITATION]:
        asked = msgspec.msgpack.decode(data, type=ToRead)
        found = read_invitation(asked.document or b"", asked.window, limited)
    else:
        found = read(msgspec.msgpack.decode(data, type=ToRead))
    sys.stdout.buffer.write(msgspec.msgpack.encode(found))


if __name__ == "__main__":
    main()
