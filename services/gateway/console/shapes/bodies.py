"""What the messages of a page look like, and how much of each it has room for. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from markupsafe import Markup

from ...http.wire import TranscriptMessage
from ..text import visible
from .prose import prose

CLIP: Final = 3_000
"""Characters of a message; one that is longer is whole on a page of its own."""
LONG: Final = 20_000
"""Characters of each of the newest, which are being read."""
NEWEST: Final = 4
"""How many are."""
SHORT: Final = 300
"""Of those for which the page has no room."""
ROOM: Final = 80_000
"""Bytes of all messages of a page, the newest first."""
_TEXT: Final = Markup('<p class="text" dir="auto">{}</p>')


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """A message as it's shown."""

    markup: Markup
    is_cut: bool


def bodies_of(
    messages: Sequence[TranscriptMessage],
    length: int = CLIP,
    *,
    is_whole: bool = False,
) -> dict[str, Body]:
    """Return how each message is shown, by its id.

    Args:
        messages: oldest first.
        length: characters of each, at most; of the newest `LONG`, unless that is less than usual
            and where the page has room for it.
        is_whole: whether each is shown to its end, whatever room that takes.
    """
    bodies: dict[str, Body] = {}
    left = ROOM
    for back, one in enumerate(reversed(messages)):
        if is_whole:
            bodies[one.id] = _body_of(one, len(one.text))
            continue
        lengths = (LONG, length) if back < NEWEST and length == CLIP else (length,)
        found = (
            _body_of(one, most) for most in dict.fromkeys(min(n, len(one.text)) for n in lengths)
        )
        body = next((body for body in found if _size(body) <= left), None)
        if body is None:
            body = _written(one.text, min(SHORT, length))
        else:
            left -= _size(body)
        bodies[one.id] = body
    return bodies


def _size(body: Body) -> int:
    return len(body.markup.encode("utf-8", "replace"))


def _body_of(message: TranscriptMessage, length: int) -> Body:
    """Show a message: what an agent wrote by its structure, a person's own words as they are."""
    if message.role != "assistant" or not message.text:
        return _written(message.text, length)
    is_cut = len(message.text) > length
    return Body(markup=prose(message.text[:length] + "…" * is_cut), is_cut=is_cut)


def _written(text: str, length: int) -> Body:
    """Show a text as it was written."""
    is_cut = len(text) > length
    return Body(markup=_TEXT.format(visible(text[:length] + "…" * is_cut)), is_cut=is_cut)
