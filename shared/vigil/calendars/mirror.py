"""What is known of a calendar, in one file of the home: written whole, so that whoever reads it, on
whichever replica, has all of one state.

It can be had again from where the calendar is, so it's in no backup. Its folder is laid out as that
of workspaces (``calendars/{agent}/{owner}.{name}``), and goes as they do when its owner is erased.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from ..contracts import Instant
from ..subjects import token_of
from .agenda import handle_of
from .entries import CalendarObject, CalendarWindow
from .section import CalendarSection

FOLDER: Final = "calendars"
STORED_EVERY: Final = timedelta(minutes=30)


class RefusedPassword(msgspec.Struct, frozen=True, kw_only=True):
    """A password that its server refused: it isn't shown to it again soon, whatever restarts."""

    token: str
    """A digest of it."""
    at: Instant


class Mirror(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One calendar as it was last seen."""

    source: str
    """A digest of where it is: what was seen of another place doesn't count."""
    window: CalendarWindow
    synced_at: Instant | None = None
    marks: dict[str, str] = msgspec.field(default_factory=dict)
    """What tells its server, or the file, whether it has changed since."""
    objects: tuple[CalendarObject, ...] = ()
    remarks: tuple[str, ...] = ()
    refused: RefusedPassword | None = None


_decoder: Final = msgspec.msgpack.Decoder(Mirror)


def source_of(section: CalendarSection) -> str:
    """Return what tells one place of a calendar from another."""
    return token_of(section.kind, section.url, section.file, section.user, section.agent)


def nothing(section: CalendarSection, now: datetime) -> Mirror:
    """Return what is known before anything is."""
    return Mirror(source=source_of(section), window=CalendarWindow.around(now))


def is_to_be_stored(before: Mirror | None, after: Mirror) -> bool:
    """Whether a look changed more than when it was; that is stored now and then."""
    if before is None or before.synced_at is None or after.synced_at is None:
        return True
    return (
        before.objects is not after.objects
        or replace(before, synced_at=None, objects=()) != replace(after, synced_at=None, objects=())
        or after.synced_at - before.synced_at >= STORED_EVERY
    )


def remarks_of(known: Mirror) -> list[str]:
    """Return what can't be read of it, or is read otherwise than it says: each once, with one of
    the events it's about."""
    about: dict[str, list[CalendarObject]] = {}
    for one in known.objects:
        if one.remark:
            about.setdefault(one.remark, []).append(one)
    told = [
        f"event {handle_of(ones[0].uid or ones[0].href)}"
        f"{f' and {len(ones) - 1} more' * (len(ones) > 1)}: {remark}"
        for remark, ones in about.items()
    ]
    return [*known.remarks, *told]


def path_of(home: Path, name: str, section: CalendarSection) -> Path:
    return home / FOLDER / section.agent / f"{section.user}.{name}"


def load(path: Path, source: str) -> Mirror | None:
    """Return what is known; None: nothing, or of another place. Raises: OSError."""
    try:
        found = _decoder.decode(path.read_bytes())
    except (FileNotFoundError, msgspec.MsgspecError):
        return None  # what can't be read is had again
    return found if found.source == source else None


def store(path: Path, mirror: Mirror) -> None:
    """Keep it, readable for its owner alone. Raises: OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Replicas may share the home, and in containers even the process id.
    draft = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.msgpack.encode(mirror))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
