"""A page of a session's records as a tree of causes, each with its gist. Pure.

What caused a record stands in it: a turn names the event that it decided, and what comes of its
effects names the effect, the turn, or the timer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from ...http.wire import TimelineRecord

_AT: Final = ("at", "created_at", "decided_at")
_TOLD: Final = ("text", "content", "reason", "message", "data", "goal", "timer_id")
"""Of a payload, what tells most; the first that is there."""


_KINDS: Final = {
    "in.said.user": "a person said",
    "in.control": "an order",
    "in.timer": "it was time",
    "in.external": "an event came",
    "in.tool_result": "a tool answered",
    "in.told": "it was told",
    "in.tick": "a regular look",
    "turn": "the agent decided",
    "call": "a tool began",
    "out.said": "the agent said",
    "send": "handed to a channel",
    "attempt": "tried to send",
    "receipt": "what became of it",
    "past": "imported",
}
_IDS: Final = re.compile(r" ?\((?:id )?[0-9a-f]{32}\)|(?:id )?\b[0-9a-f]{32}\b")


def kind_in_words(kind: str) -> str:
    """Return what a record is, by what its subject says.

    >>> kind_in_words("in.said.user"), kind_in_words("turn-st"), kind_in_words("in.new_thing")
    ('a person said', 'the agent decided', 'in new thing')
    """
    known = _KINDS.get(kind) or _KINDS.get(kind.partition("-")[0])
    return known or kind.replace(".", " ").replace("_", " ")


class CausedRecord(msgspec.Struct, kw_only=True):
    """A record, and what it caused."""

    seq: int
    kind: str
    at: str
    gist: str
    id: str
    children: list[CausedRecord] = msgspec.field(default_factory=list)


def causes_of(records: Iterable[TimelineRecord]) -> list[CausedRecord]:
    """Return what has no cause among `records`, with all that came of it below.

    >>> event = TimelineRecord(seq=1, kind="in", data={"id": "e1"})
    >>> turn = TimelineRecord(seq=2, kind="turn", data={"id": "t1", "event": {"id": "e1"}})
    >>> said = TimelineRecord(seq=3, kind="out", data={"id": "s1", "turn_seq": 2})
    >>> [(one.seq, [two.seq for two in one.children]) for one in causes_of([event, turn, said])]
    [(1, [2])]
    """
    roots: list[CausedRecord] = []
    by_seq: dict[int, CausedRecord] = {}
    found: dict[str, int] = {}
    for one in records:
        data = one.data if isinstance(one.data, dict) else {}
        node = CausedRecord(seq=one.seq, kind=one.kind, at=_at(data), gist=gist(data), id=_id(data))
        parents = (found.get(name) for name in _causes(data))
        parent = next((seq for seq in parents if seq is not None and seq in by_seq), None)
        (roots if parent is None else by_seq[parent].children).append(node)
        by_seq[one.seq] = node
        found |= dict.fromkeys((f"seq {one.seq}", *_names(data)), one.seq)
    return roots


def gist(data: Mapping[str, Any]) -> str:
    """Return a record in a line.

    >>> gist({"type": "user_message", "payload": {"text": "hi"}})
    'hi'
    >>> gist({"outcome": "void", "reason": "the person spoke first"})
    'void: the person spoke first'
    >>> gist({"outcome": "answered", "effects": [{"type": "send_message"}], "notes": []})
    'answered; send message'
    """
    if "payload" in data and isinstance(data["payload"], dict):
        payload = data["payload"]
        told = next((payload[name] for name in _TOLD if payload.get(name)), "")
        return ": ".join(str(part) for part in (payload.get("op"), told) if part)
    notes = [_note(one) for one in data.get("notes") or ()]
    effects = [one["type"].replace("_", " ") for one in data.get("effects") or ()]
    state = data.get("outcome") or data.get("state")
    head = state if isinstance(state, str) else ""
    told = data.get("text") or data.get("reason") or data.get("tool") or data.get("channel") or ""
    start = f"{head}: {told}" if head and told else f"{head}{told}"
    return "; ".join(part for part in (start, *effects, *notes) if part)


def _note(note: Mapping[str, Any]) -> str:
    """Return a note without the ids that it may have, which tell nobody anything.

    >>> _note({"code": "was_held", "text": "1 memory (" + "a" * 32 + ")"})
    'was held: 1 memory'
    """
    text = _IDS.sub("", note.get("text") or "").strip()
    return ": ".join(part for part in (note["code"].replace("_", " "), text) if part)


def _at(data: Mapping[str, Any]) -> str:
    return next((str(data[name]) for name in _AT if name in data), "")


def _id(data: Mapping[str, Any]) -> str:
    return str(data.get("id") or data.get("effect_id") or "")


def _names(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield by what later records name this one."""
    if "id" in data:
        yield f"id {data['id']}"
    for one in data.get("effects") or ():
        yield f"effect {one['id']}"
        payload = one.get("payload") or {}
        if "timer_id" in payload:
            yield f"timer {payload['timer_id']} {payload.get('generation')}"


def _causes(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield what may have caused a record, the closest first."""
    found = data.get("payload")
    payload: Mapping[str, Any] = found if isinstance(found, dict) else {}
    if isinstance(data.get("event"), dict):
        yield f"id {data['event'].get('id')}"
    if "turn_seq" in data:
        yield f"seq {data['turn_seq']}"
    yield f"effect {data.get('id')}"  # what was said has the id of its effect
    yield f"effect {data.get('effect_id') or payload.get('call_id') or payload.get('effect_id')}"
    yield f"timer {payload.get('timer_id')} {payload.get('generation')}"
    yield f"id {data.get('caused_by')}"
