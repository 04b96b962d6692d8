"""A second look, by the names of people and things that the first one found.

"What does Nora's cousin play?" finds "my cousin Tilda stayed with us", and the answer stands where
Tilda is, without a word of the question. So names in the best memories that the question hasn't
lead to what has them, too: the fewer have a name, the more. If the question asks for what is
somebody's, as there, what is led to most counts as said by whom it names: anybody may tell it.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from ..numeric import np
from . import candidates, lookups, terms
from .candidates import Sought
from .lookups import Narrowed
from .scores import Candidates, Scored
from .words import Words

FOLLOWED: Final = 3
"""The best whose names are followed. (With five, less of the evidence was among the first five.)"""
NAMES_MAX: Final = 16
"""Of one memory; each is a look-up in the full text."""
BEARERS_MAX: Final = 20
"""Memories with a name; one that more have leads nowhere."""


def follow(
    db: sqlite3.Connection,
    narrowed: Narrowed,
    sought: Sought,
    words: Words,
    pool: Candidates,
    best: Sequence[Scored],
) -> Candidates:
    """Return the candidates and what the names of the best lead to, with how much they do; the same
    candidates, if those lead nowhere."""
    followed = {int(pool.nums[one.at]): one.score for one in best[:FOLLOWED]}
    led = _led(db, narrowed, sought, followed)
    if not led:
        return pool
    unseen = led.keys() - set(pool.nums.tolist())
    if unseen:
        rows = lookups.rows(db, narrowed, sorted(unseen))
        pool = candidates.both(pool, candidates.known(rows, sought, words))
    names = np.array([led.get(num, 0.0) for num in pool.nums.tolist()], dtype=np.float64)
    speaks = pool.is_speaker
    if sought.is_possessive and speaks.any():
        speaks = speaks | (names == max(led.values()))
    return msgspec.structs.replace(pool, names=names, is_speaker=speaks)


def _led(
    db: sqlite3.Connection,
    narrowed: Narrowed,
    sought: Sought,
    followed: Mapping[int, float],
) -> Mapping[int, float]:
    """Return the numbers of memories that names lead to, with 0 to 1: how much.

    The best has as much as what is led to most, and so stays the best.

    Args:
        followed: numbers, best first, with their scores.
    """
    led: dict[int, float] = {}
    best = max(followed.values())
    texts = lookups.contents(db, narrowed, followed)
    for num, score in followed.items():
        share = max(score / best, 0.0) ** 2 if best > 0 else 0.0
        for name in sorted(terms.names(texts.get(num, "")) - sought.words)[:NAMES_MAX]:
            others = set(lookups.bearers(db, narrowed, name, BEARERS_MAX)) - {num}
            for other in others:
                led[other] = max(led.get(other, 0.0), share / math.sqrt(len(others)))
    if led:
        led[next(iter(followed))] = max(led.values())
    return led
