"""A question before what can't be undone, and an undo after what can. Pure.

A page that has something final to do has `ask(visit)`, which returns a :class:`Confirmation`; the
form comes again with `SURE` when it is answered. What can be undone names its undo in the address
that it leads to: one of a few kinds, so that no link makes a page say or do anything else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec
from markupsafe import Markup

SURE: Final = "sure"
"""The field of a form that says yes."""
UNDO: Final = "undo"
"""The parameter of an address that names what can be undone."""
DECIDED: Final = "decided"
"""The parameter of an address that names the request that a form decided."""


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
    >>> undo_of("letter/ann:vigil:t1/a12").fields
    {'do': 'unvouch', 'letter': 'a12'}
    >>> undo_of("cap/0").fields, undo_of("trust/1f2e/vigil").action
    ({'do': 'lower', 'times': '0'}, '/trust')
    >>> undo_of("pause/off/x"), undo_of("tasks/../x/1"), undo_of("archive/a/b"), undo_of("")
    (None, None, None, None)
    """
    for pattern, offer in _KINDS:
        if found := pattern.fullmatch(named):
            return offer(*found.groups())
    return None


def _move(kind: str, id_: str, status: str, revision: str) -> OfferedUndo:
    fields = {"do": "move", "id": id_, "status": status, "revision": revision}
    return OfferedUndo(told="Moved.", action=f"/{kind}s", fields=fields)


def _row(id_: str, do: str, revision: str) -> OfferedUndo:
    told = "It is paused." if do == "resume" else "It goes on."
    fields = {"do": do, "id": id_, "revision": revision}
    return OfferedUndo(told=told, action="/timetable", fields=fields)


def _archive(key: str) -> OfferedUndo:
    fields = {"do": "unarchive"}
    return OfferedUndo(told="Put away.", action=f"/conversations/{key}", fields=fields)


def _server(name: str, do: str) -> OfferedUndo:
    told = "It is off." if do == "on" else "It is on again."
    return OfferedUndo(told=told, action="/servers", fields={"do": do, "name": name})


def _trust(id_: str, agent: str) -> OfferedUndo:
    fields = {"do": "end", "id": id_, "agent": agent}
    return OfferedUndo(told="It is trusted from now on.", action="/trust", fields=fields)


def _letter(key: str, handle: str) -> OfferedUndo:
    fields = {"do": "unvouch", "letter": handle}
    action = f"/conversations/{key}"
    return OfferedUndo(told="It counts as your own.", action=action, fields=fields)


def _cap(times: str) -> OfferedUndo:
    fields = {"do": "lower", "times": times}
    return OfferedUndo(told="Raised for today.", action="/cost", fields=fields)


def _pause(to: str) -> OfferedUndo:
    told = "Your agents are paused." if to == "off" else "Your agents go on."
    return OfferedUndo(told=told, action="/pause", fields={"whose": "mine", "to": to})


_KEY: Final = "((?:[A-Za-z0-9_-]{1,64}:){2}[A-Za-z0-9_-]{1,64})"
_NAME: Final = "([A-Za-z0-9_-]{1,64})"
_ID: Final = "([0-9a-f]{32})"
_KINDS: Final[tuple[tuple[re.Pattern[str], Callable[..., OfferedUndo]], ...]] = tuple(
    (re.compile(pattern, re.ASCII), offer)
    for pattern, offer in (
        (rf"(task|goal)s/{_ID}/([a-z_]{{1,20}})/(\d{{1,16}})", _move),
        (rf"row/{_ID}/(pause|resume)/(\d{{1,16}})", _row),
        (f"archive/{_KEY}", _archive),
        (f"server/{_NAME}/(on|off)", _server),
        (f"trust/{_NAME}/{_NAME}", _trust),
        (rf"letter/{_KEY}/([a-z]\d{{1,9}})", _letter),
        (r"cap/(\d{1,4})", _cap),
        ("pause/(on|off)", _pause),
    )
)


def with_undo(address: str, named: str) -> str:
    """Return an address that offers to undo something; with nothing named, as it is.

    >>> with_undo("/tasks", "pause/on"), with_undo("/a?b=1&undo=x#c", "pause/on")
    ('/tasks?undo=pause/on', '/a?b=1&undo=pause/on#c')
    """
    return _with(address, UNDO, named)


def with_decided(address: str, id_: str) -> str:
    """Return an address that tells what became of a request.

    >>> with_decided("/inbox?decided=0b", "0a")
    '/inbox?decided=0a'
    """
    return _with(address, DECIDED, id_)


def decided_of(named: str) -> str:
    """Return the id of the request that an address tells of; empty: it tells of none.

    >>> decided_of("0a" * 16), decided_of("../tasks")
    ('0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a', '')
    """
    return named if re.fullmatch(_ID, named, re.ASCII) else ""


def _with(address: str, name: str, value: str) -> str:
    place, mark, part = address.partition("#")
    path, _, query = place.partition("?")
    kept = [one for one in query.split("&") if one and not one.startswith(f"{name}=")]
    kept += [f"{name}={value}"] if value else []
    return f"{path}{'?' * bool(kept)}{'&'.join(kept)}{mark}{part}"
