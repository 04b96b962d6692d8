"""What becomes of a message whose work failed, by the kind of the failure. Pure.

Whoever raises picks the kind; this is the one table that maps it:

    TryLater            given back for as long as it asks; its lane goes on
    Overtaken           back behind the older ones of its lane, which came meanwhile
    Unavailable         given back for a while, and the newer ones of its lane with it
    InvalidInput        a dead letter: no try will change it
    Terminal            the same, for another reason than what the message says
    anything else       the broker refuses, or a bug: some tries, then a dead letter
"""

from __future__ import annotations

from typing import Final, Literal

from ..errors import InvalidInput, Unavailable, VigilError


class TryLater(VigilError):
    """Not now, though nothing is wrong; what comes after it in its lane needn't wait.

    Args:
        reason: for the log; empty: it's as planned, and not logged.
    """

    def __init__(self, delay_s: float, reason: str = "") -> None:
        super().__init__(reason)
        self.delay_s = delay_s


class Overtaken(VigilError):
    """An older message of the lane came meanwhile: that one first."""


class Terminal(VigilError):
    """It can't be carried out, and never will be."""


Outcome = Literal["later", "overtaken", "given_back", "buried", "refused"]

_OUTCOMES: Final[tuple[tuple[type[Exception], Outcome], ...]] = (
    (TryLater, "later"),
    (Overtaken, "overtaken"),
    (Unavailable, "given_back"),
    (InvalidInput, "buried"),
    (Terminal, "buried"),
)


def outcome_of(error: Exception) -> Outcome:
    """Return what becomes of the message.

    >>> outcome_of(Unavailable("no broker")), outcome_of(ZeroDivisionError())
    ('given_back', 'refused')
    """
    found = (outcome for kind, outcome in _OUTCOMES if isinstance(error, kind))
    return next(found, "refused")
