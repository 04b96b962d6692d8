"""How a story names people, instants and what was said. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from .cutting import clip


class Voice(msgspec.Struct, frozen=True):
    """How the person is named."""

    person: str
    is_asking: bool

    @property
    def they(self) -> str:
        return "you" if self.is_asking else self.person

    @property
    def start(self) -> str:
        """The same at the start of a sentence."""
        return "You" if self.is_asking else self.person

    def tell(self, text: str) -> str:
        """Name the person in a text that a service wrote.

        >>> Voice("ann", True).tell("the person has spoken"), Voice("ann", False).tell("the person")
        ('you have spoken', 'ann')
        """
        if self.is_asking:
            text = text.replace("the person has", "you have")
        return text.replace("the person", self.they)


def instant(at: datetime) -> str:
    """Return an instant for people.

    >>> instant(datetime(2026, 11, 20, 9, tzinfo=UTC))
    '2026-11-20 09:00:00 UTC'
    """
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def quote(text: str) -> str:
    return f"“{clip(text)}”"
