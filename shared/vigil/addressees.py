"""Whom a turn is for: letters of services, in the last token of its subject. Pure.

``session.vigil.ann.t1.turn-sm`` has work for delivery and for memory, ``….turn-0`` for nobody. So a
service is brought the turns that it has work with, and no others.
"""

from __future__ import annotations

from itertools import combinations
from typing import Final

LETTERS: Final = "stmx"
"""Of the services that carry out effects of turns: "s" if there is a send (delivery), "t" if a
timer is scheduled or cancelled (scheduler), "m" if memory has something to do (a call of one of its
tools, something to save), "x" if the executor has (a call of its tools or its end, a session to
start or to tell something, a change of the board)."""
NOBODY: Final = "0"
"""Stands for no letter at all."""


def is_turn(subject: str) -> bool:
    """Whether that is where turns are, of whichever session.

    >>> is_turn("session.vigil.ann.t1.turn-sm"), is_turn("session.vigil.ann.t1.in.turn-sm.x")
    (True, False)
    """
    kind = subject.rpartition(".")[2]
    return kind.partition("-")[0] == "turn"


def speaks(subject: str) -> bool:
    """Whether turns that are there decided to say something; of older versions all may have.

    >>> [speaks(f"session.vigil.ann.t1.{one}") for one in ("turn-sm", "turn-0", "turn")]
    [True, False, True]
    """
    kind, _, letters = subject.rpartition(".")[2].partition("-")
    return kind == "turn" and (not letters or "s" in letters)


def turns_for(letter: str, *, of_system: bool = False) -> tuple[str, ...]:
    """Return the filters of the turns that the service with that letter has work with.

    Each is a whole token: NATS has no wildcard for a part of one.

    >>> turns_for("x")[:3]
    ('session.*.*.*.turn', 'session.*.*.*.turn-x', 'session.*.*.*.turn-sx')
    """
    others = LETTERS.replace(letter, "")
    sets = [set(some) for size in range(len(LETTERS)) for some in combinations(others, size)]
    tokens = ["".join(one for one in LETTERS if one in {letter, *some}) for some in sets]
    top = "system" if of_system else "session"
    return tuple(f"{top}.*.*.*.{kind}" for kind in ("turn", *(f"turn-{one}" for one in tokens)))
