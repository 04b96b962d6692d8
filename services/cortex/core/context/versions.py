"""Older versions of a conversation: turns that the person took back. Pure.

A message that replaces an earlier one takes back that one and all that came after it. The log keeps
those turns; each state tells which of the turns before it count, so that a fork of an older version
begins with what that version knew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from vigil.contracts import State, Turn
from vigil.contracts.events import Replaced
from vigil.contracts.history import TakenBack

VERSIONS_MAX: Final = 200
"""Places of a conversation where something was taken back, as its state keeps them."""


def without_taken_back(turn: Turn, taken_back: Sequence[TakenBack]) -> Turn:
    """Return what of a turn counts: of one that was taken back nothing but what it left unsaid."""
    if not any(one.has_turn(turn.ordinal) for one in taken_back):
        return turn
    return replace(turn, rows=(), summary="")


def taken_back_by(
    earlier: Sequence[TakenBack], replaced: Replaced, *, by: int, last: int
) -> tuple[TakenBack, ...]:
    """Return all that is taken back once the message `by` takes the place of another.

    Args:
        last: ordinal of the newest turn.
    """
    newest = TakenBack(
        first=replaced.turn + 1,
        last=last,
        event_id=replaced.event_id,
        said_from=replaced.seq,
        turns_after=replaced.turn_seq,
        by=by,
    )
    return (*(one for one in earlier if one.first < newest.first), newest)[-VERSIONS_MAX:]


def is_gone(taken_back: Sequence[TakenBack], replaced: Replaced) -> bool:
    """Whether a message was taken back already, with one before it."""
    first = replaced.turn + 1
    return any(one.first < first <= one.last for one in taken_back)


def is_rewinding(state: State, ordinal: int) -> bool:
    """Whether the turn of that ordinal, which leaves this state, is the one that took back others.

    >>> one = TakenBack(first=3, last=7, event_id="e", said_from=9, turns_after=6, by=30)
    >>> is_rewinding(State(taken_back=(one,)), 8), is_rewinding(State(taken_back=(one,)), 9)
    (True, False)
    """
    return bool(state.taken_back) and state.taken_back[-1].last == ordinal - 1
