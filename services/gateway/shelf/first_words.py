"""The first words of a conversation: what its person said first, or else its agent."""

from __future__ import annotations

from vigil.bus.bus import Bus, Message
from vigil.past import places, words
from vigil.subjects import SessionKey


async def first_said(bus: Bus, session: SessionKey, start: int = 1) -> Message | None:
    """Return what a person said first from a sequence on, or else what was said first at all.

    None: nobody said anything. Raises: Unavailable.
    """
    first = await bus.get_next(session.stream, places.said_in(session), start)
    return first or await bus.get_next(session.stream, session.transcript, start)


def words_of(message: Message | None) -> str:
    """Return the words, whoever said them; empty: nothing, or they can't be read."""
    said = None if message is None else words.said_in(message)
    return "" if said is None else said.text
