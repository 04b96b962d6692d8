"""How rare each token of the word model is in a scope, made as it is needed and kept."""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from typing import Final, NamedTuple

from vigil.subjects import Scope

from ..numeric import np
from ..store import counts
from ..store.counts import Counted
from ..store.places import Place
from .words import Counts, Floats

SCOPES_MAX: Final = 256
"""Whose word frequencies are kept in memory (256 kB each)."""


class Frequencies:
    """In how many memories of one scope each token stands; only ever added to."""

    def __init__(self, size: int) -> None:
        self._counts: Counts = np.zeros(size, dtype=np.int64)
        self.memories = 0
        """How many were counted."""
        self._rarity: Floats | None = None
        self.through = 0
        """The last memory that is counted (`memories.num`)."""

    def resume(self, counted: Counted) -> None:
        """Begin with what was counted before."""
        known = counted.tokens[: len(self._counts)]
        self._counts[: len(known)] = known
        self.memories, self.through = counted.memories, counted.through

    def add(self, num: int, tokens: bytes) -> None:
        """Count one more memory, if it says anything."""
        self._counts[np.frombuffer(tokens, dtype=np.uint32)] += 1
        self.memories += bool(tokens)
        self._rarity = None
        self.through = num

    def rarity(self) -> Floats:
        """Return the weight of every token, as BM25 has it but never below 0; not to be changed."""
        if self._rarity is None:
            missing = np.maximum(self.memories - self._counts, 0) + 0.5
            self._rarity = np.log1p(missing / (self._counts + 0.5))
        return self._rarity


class KnownFrequencies:
    """Word frequencies by scope, made as they are needed; readers on several threads share them.

    A scope is counted by one of them at a time (300,000 memories take seconds), and nobody waits
    for another's.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._known: OrderedDict[Scope, _Counted] = OrderedDict()

    def rarity(self, db: sqlite3.Connection, scope: Scope, place: Place) -> Floats:
        """Return how much each token weighs among all that was ever saved in a scope."""
        counted = self._of(scope)
        with counted.lock:
            return _current(db, counted.frequencies, place).rarity()

    def memories(self, db: sqlite3.Connection, scope: Scope, place: Place) -> int:
        """Return how many memories were ever saved in a scope."""
        counted = self._of(scope)
        with counted.lock:
            return _current(db, counted.frequencies, place).memories

    def _of(self, scope: Scope) -> _Counted:
        with self._lock:
            known = self._known.get(scope) or _Counted(Frequencies(self._size), threading.Lock())
            self._known[scope] = known
            self._known.move_to_end(scope)
            while len(self._known) > SCOPES_MAX:
                self._known.popitem(last=False)
            return known

    def drop(self, scope: Scope) -> None:
        with self._lock:
            self._known.pop(scope, None)


class _Counted(NamedTuple):
    frequencies: Frequencies
    lock: threading.Lock
    """Held by whoever counts on."""


def _current(db: sqlite3.Connection, known: Frequencies, place: Place) -> Frequencies:
    if not known.through:
        known.resume(counts.stored(db, place))
    for num, stored in counts.tokens_after(db, place, known.through):
        known.add(num, stored)
    return known
