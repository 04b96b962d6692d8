"""What was read of conversations for a list of them, and changes only as somebody writes."""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime
from typing import Final

import msgspec

from ..http.wire import Forked

KNOWN_MAX: Final = 2_000
"""Conversations of which is kept what only a person's next message changes."""


class KnownTalk(msgspec.Struct, frozen=True):
    """What a conversation comes to up to a person's newest message in it."""

    newest: int
    """Its sequence: with another one all is read anew."""
    last_at: datetime | None
    """When it was written; None: it can't be read."""
    messages: int
    first_words: str
    fork_of: Forked | None


class KnownTalks:
    """What was read of conversations, kept in memory until a person writes in them again."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, KnownTalk] = OrderedDict()

    def find(self, key: str, newest: int) -> KnownTalk | None:
        """Return what is known, if it's of that newest message."""
        found = self._known.get(key)
        return found if found is not None and found.newest == newest else None

    def keep(self, key: str, known: KnownTalk) -> None:
        self._known[key] = known
        self._known.move_to_end(key)
        if len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)

    def forget(self, key: str) -> None:
        self._known.pop(key, None)
