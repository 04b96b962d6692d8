"""Memories that hold a number or a name which stands in no other, and questions that name it.

Everything follows from a seed. The memories of a kind differ in little but that name, and what is
asked has most of its words in common with all of them: only the name tells which one is meant.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Final, NamedTuple

from bench.conversations import FIRST_DAY, Turn

COUNT: Final = 60
"""Of each kind of name there are as many as of any other."""
A_THREAD: Final = 10


class Named(NamedTuple):
    """A turn with a name of its own, and a question that is about that turn alone."""

    turn: Turn
    question: str


class _Kind(NamedTuple):
    make: Callable[[random.Random], str]
    said: str
    asked: str


def _digits(dice: random.Random, count: int) -> str:
    return "".join(dice.choices(string.digits, k=count))


def _letters(dice: random.Random, count: int) -> str:
    return "".join(dice.choices(string.ascii_uppercase, k=count))


_KINDS: Final = (
    _Kind(
        lambda dice: _digits(dice, 6),
        "the order {id} was late again, so I wrote to the shop",
        "What happened with order {id}?",
    ),
    _Kind(
        lambda dice: f"{_letters(dice, 2)}-{_digits(dice, 4)}",
        "I put {id} on the box with the winter clothes and carried it up",
        "What is in the box marked {id}?",
    ),
    _Kind(
        lambda dice: f"{dice.randint(1, 9)}.{dice.randint(0, 40)}.{dice.randint(0, 40)}",
        "after the update to version {id} the printer worked for a week",
        "How was the printer after version {id}?",
    ),
    _Kind(
        lambda dice: f"+49 171 {_digits(dice, 7)}",
        "the number of the garage is {id} now, they moved once more",
        "Whose number is {id}?",
    ),
    _Kind(
        lambda dice: f"{_letters(dice, 1).lower()}{_digits(dice, 3)}@example.com",
        "write to {id} about the flat, they answer within a day",
        "What is {id} for?",
    ),
    _Kind(
        lambda dice: _digits(dice, 4) + _letters(dice, 3).lower() + _digits(dice, 4),
        "the build {id} failed and nobody knew why until lunch",
        "Why did {id} fail?",
    ),
)  # fmt: skip


def build(seed: int) -> list[Named]:
    """Build the turns of a seed, in an order that mixes the kinds, and their questions."""
    dice = random.Random(f"identifiers/{seed}")
    return list(_named(dice))


def _named(dice: random.Random) -> Iterator[Named]:
    at = FIRST_DAY
    seen: set[str] = set()
    while len(seen) < COUNT:
        kind = _KINDS[len(seen) % len(_KINDS)]
        name = kind.make(dice)
        if name in seen:
            continue
        thread = f"named-{len(seen) // A_THREAD}"
        text = f"{dice.choice(('Nora', 'Felix'))}: {kind.said.format(id=name)}"
        yield Named(Turn(len(seen), thread, at, text), kind.asked.format(id=name))
        seen.add(name)
        at += timedelta(hours=dice.randint(1, 60))
