"""A question before what can't be undone, and an undo after what can. Pure.

A page that has something final to do has `ask(visit)`, which returns a :class:`Confirmation`; the
form comes again with `SURE` when it is answered. What can be undone names its undo in the address
that it leads to: one of a few kinds, so that no link makes a page say or do anything else.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec
from markupsafe import Markup

SURE: Final = "sure"
"""The field of a form that says yes."""
UNDO: Final = "undo"
"""The parameter of an address that names what can be undone."""
_MOVE: Final = re.compile(r"(task|goal)s/([0-9a-f]{32})/([a-z_]{1,20})/(\d{1,16})", re.ASCII)
_ROW: Final = re.compile(r"row/([0-9a-f]{32})/(pause|resume)/(\d{1,16})", re.ASCII)
_PUT_AWAY: Final = re.compile(r"archive/((?:[A-Za-z0-9_-]{1,64}:){2}[A-Za-z0-9_-]{1,64})", re.ASCII)
_SERVER: Final = re.compile(r"server/([A-Za-z0-9_-]{1,64})/(on|off)", re.ASCII)
_PAUSE: Final = re.compile(r"pause/(on|off)", re.ASCII)


class Confirmation(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody is asked before it is done."""

    title: str
    text: str
    yes: str
    """What the button says that does it."""
    exact: tuple[Markup, ...] = ()
    """What exactly it is about, as it's shown."""


class OfferedUndo(msgspec.Struct, frozen=True, kw_only=True):
    """A form that undoes what was just done."""

    told: str
    action: str
    """Below the console's path."""
    fields: dict[str, str]


def undo_of(named: str) -> OfferedUndo | None:
    """Return what an address offers to undo; None: nothing.

    >>> undo_of("pause/off").fields
    {'whose': 'mine', 'to': 'off'}
    >>> undo_of(f"tasks/{'a' * 32}/backlog/7").told
    'Moved.'
    >>> undo_of("archive/ann:vigil:t1").action
    '/conversations/ann:vigil:t1'
    >>> undo_of("server/notes/on").fields
    {'do': 'on', 'name': 'notes'}
    >>> undo_of("pause/off/x"), undo_of("tasks/../x/1"), undo_of("archive/a/b"), undo_of("")
    (None, None, None, None)
    """
    if found := _MOVE.fullmatch(named):
        kind, id_, status, revision = found.groups()
        fields = {"do": "move", "id": id_, "status": status, "revision": revision}
        return OfferedUndo(told="Moved.", action=f"/{kind}s", fields=fields)
    if found := _ROW.fullmatch(named):
        id_, do, revision = found.groups()
        told = "It is paused." if do == "resume" else "It goes on."
        fields = {"do": do, "id": id_, "revision": revision}
        return OfferedUndo(told=told, action="/timetable", fields=fields)
    if found := _PUT_AWAY.fullmatch(named):
        fields = {"do": "unarchive"}
        return OfferedUndo(told="Put away.", action=f"/conversations/{found[1]}", fields=fields)
    if found := _SERVER.fullmatch(named):
        told = "It is off." if found[2] == "on" else "It is on again."
        fields = {"do": found[2], "name": found[1]}
        return OfferedUndo(told=told, action="/servers", fields=fields)
    if found := _PAUSE.fullmatch(named):
        told = "Your agents are paused." if found[1] == "off" else "Your agents go on."
        return OfferedUndo(told=told, action="/pause", fields={"whose": "mine", "to": found[1]})
    return None


def with_undo(address: str, named: str) -> str:
    """Return an address that offers to undo something; with nothing named, as it is.

    >>> with_undo("/tasks", "pause/on"), with_undo("/a?b=1&undo=x#c", "pause/on")
    ('/tasks?undo=pause/on', '/a?b=1&undo=pause/on#c')
    """
    place, mark, part = address.partition("#")
    path, _, query = place.partition("?")
    kept = [one for one in query.split("&") if one and not one.startswith(f"{UNDO}=")]
    kept += [f"{UNDO}={named}"] if named else []
    return f"{path}{'?' * bool(kept)}{'&'.join(kept)}{mark}{part}"
