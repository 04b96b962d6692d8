"""What a person has, as Markdown that they can read. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from msgspec import ValidationError, convert, json

from ..contracts import Said, UserMessage, decode_event, decode_said, decode_turn
from ..contracts.board import Schedule
from ..contracts.codec import decode_past
from ..contracts.past.words import PastWords
from ..errors import InvalidInput
from ..past.places import is_past
from ..timetable.schedule import words_of

TITLES: Final = {"task": "title", "goal": "description", "preference": "key", "row": "name"}
"""Kinds of the board that are told, and the field that says what one is."""


def spoken(subject: str, data: bytes) -> str | None:
    """Return a line of a conversation; None: that record says nothing, or can't be read."""
    try:
        if subject.endswith(".in.said.user"):
            event = decode_event(data)
            return _of_person(event) if isinstance(event, UserMessage) else None
        if is_past(subject):
            return _of_past(decode_past(data))
        return _of_agent(decode_said(data)) if ".out.said." in subject else None
    except InvalidInput:
        return None


def _of_person(event: UserMessage) -> str:
    said = event.payload
    files = "".join(f"\n\n[{one.name}](../../files/{one.hash})" for one in said.attachments)
    who = said.by or event.session_key.partition(":")[0]
    return f"**{who}**, {event.created_at:%Y-%m-%d %H:%M} UTC\n\n{said.text}{files}\n"


def _of_past(words: PastWords) -> str:
    user, agent, _ = words.session_key.split(":")
    who = agent if words.role == "agent" else words.by or user
    return f"**{who}**, imported, {words.at:%Y-%m-%d %H:%M} UTC\n\n{words.text}\n"


def _of_agent(said: Said) -> str:
    agent = said.session_key.split(":")[1]
    unasked = ", unasked" if said.is_autonomous else ""
    return f"**{agent}**{unasked}, {said.at:%Y-%m-%d %H:%M} UTC\n\n{said.text}\n"


def reminders(turn: bytes) -> list[tuple[datetime, str]]:
    """Return the reminders that a person is to have yet, each with when, and as an item of a list.

    Args:
        turn: the newest of a conversation.
    """
    try:
        found = decode_turn(turn)
    except InvalidInput:
        return []
    thread = found.session_key.rpartition(":")[2]
    return [
        (one.fire_at, f"* {one.fire_at:%Y-%m-%d %H:%M} UTC: {_indented(text)} (in {thread})")
        for one in found.state.follow_ups.values()
        if one.keep and (text := one.message or one.reason)
    ]


def memory_line(memory: dict[str, Any]) -> str:
    """Return a memory as an item of a list, with the day that it tells of.

    >>> memory_line({"content": "Has a cat", "created_at": "2026-03-01T00:00:00Z"})
    '* Has a cat (fact, 2026-03-01)'
    """
    outside = ", from outside" if memory.get("is_tainted") else ""
    kind = memory.get("type", "fact")
    day = (memory.get("occurred_at") or memory["created_at"])[:10]
    return f"* {_indented(memory['content'])} ({kind}, {day}{outside})"


def board_items(kind: str, entities: Iterable[dict[str, Any]]) -> list[str]:
    """Return what stands on the board of a kind, as items of a list; without the rows that nobody
    made, as they follow from the configuration.

    >>> board_items("goal", [{"description": "Learn Greek", "status": "active"}])
    ['* Learn Greek (active)']
    >>> auto_merge = {"key": "auto_merge", "value": True, "is_negative": True}
    >>> board_items("preference", [{"key": "answers", "value": "short"}, auto_merge])
    ['* answers = "short"', '* auto_merge = not true']
    """
    return [_item(kind, one) for one in entities if one.get("made_by") != "system"]


def _item(kind: str, one: dict[str, Any]) -> str:
    """Return what it is, how things stand with it, and what more it says."""
    title, states, more = str(one.get(TITLES[kind], "")), [str(one.get("status") or "")], ""
    if "value" in one:
        title += (
            f" = {'not ' if one.get('is_negative') else ''}{json.encode(one['value']).decode()}"
        )
    if kind == "task":
        more = str(one.get("description") or "")
    elif kind == "row":
        states += [_when(one), "" if one.get("is_enabled", True) else "paused"]
        more = str(one.get("work", {}).get("prompt") or "")
    states.append("removed" if one.get("is_removed") else "")
    stands = "; ".join(filter(None, states))
    return "\n\n  ".join(
        filter(None, (f"* {title}{f' ({stands})' if stands else ''}", _indented(more)))
    )


def _when(row: dict[str, Any]) -> str:
    try:
        return words_of(convert(row.get("schedule"), Schedule))
    except (ValidationError, InvalidInput):
        return ""  # written by a version that knows more


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")
