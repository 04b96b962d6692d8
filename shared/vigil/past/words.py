"""What is read of a record of the transcript, whether it was said here or imported."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from ..bus.bus import Message
from ..contracts import UserMessage, decode_event, decode_said
from ..contracts.codec import decode_past
from ..errors import InvalidInput
from .places import is_by_person, is_past


class SpokenWords(NamedTuple):
    """What somebody said, and when."""

    text: str
    at: datetime


def text_of(message: Message | None) -> str:
    """Return what a person said; empty: nothing, or it can't be read."""
    said = by_person(message)
    return "" if said is None else said.text


def by_person(message: Message | None) -> SpokenWords | None:
    """Return what a person said; None: nothing, another one said it, or it can't be read."""
    if message is None:
        return None
    try:
        if is_past(message.subject):
            words = decode_past(message.data)
            return SpokenWords(words.text, words.at) if words.role == "user" else None
        event = decode_event(message.data)
    except InvalidInput:
        return None
    if not isinstance(event, UserMessage):
        return None
    return SpokenWords(event.payload.text, event.created_at)


def said_in(message: Message) -> SpokenWords | None:
    """Return what a person or an agent said; None: it can't be read."""
    try:
        if is_past(message.subject):
            words = decode_past(message.data)
            return SpokenWords(words.text, words.at)
        if is_by_person(message.subject):
            return by_person(message)
        said = decode_said(message.data)
    except InvalidInput:
        return None
    return SpokenWords(said.text, said.at)
