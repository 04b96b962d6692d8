"""What a person has, as Markdown that they can read. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ..contracts import Said, UserMessage, decode_event, decode_said
from ..contracts.codec import decode_past
from ..contracts.past.words import PastWords
from ..errors import InvalidInput
from ..past.places import is_past

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


def memory_line(memory: dict[str, Any]) -> str:
    """Return a memory as an item of a list.

    >>> memory_line({"content": "Has a cat", "created_at": "2026-03-01T00:00:00Z"})
    '* Has a cat (fact, 2026-03-01)'
    """
    outside = ", from outside" if memory.get("is_tainted") else ""
    kind, day = memory.get("type", "fact"), memory["created_at"][:10]
    content = memory["content"].replace("\n", "\n  ")
    return f"* {content} ({kind}, {day}{outside})"


def board_page(kind: str, entities: Iterable[dict[str, Any]]) -> str:
    """Return what stands on the board of a kind, as a page.

    >>> board_page("goal", [{"description": "Learn Greek", "status": "active"}])
    '# goal\\n\\n* Learn Greek (active)\\n'
    """
    lines = [f"# {kind}", ""]
    for one in entities:
        value = f" = {one['value']}" if "value" in one else ""
        state = one.get("status") or ("removed" if one.get("is_removed") else "")
        lines.append(f"* {one.get(TITLES[kind], '')}{value}{f' ({state})' if state else ''}")
    return "\n".join(lines) + "\n"
