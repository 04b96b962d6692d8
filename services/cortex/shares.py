"""How many sessions of one person may be busy at once, so that others get their turn. Pure.

The broker hands out wakes in the order in which they were stored, so a few thousand messages of one
person would stand before everybody else's. Here each person has a line of their own: what is beyond
their share waits in it, and nobody else waits behind it. A session is busy while a wake is held for
it; one that waits for a result, or for the person, is not.
"""

from __future__ import annotations

from collections import deque

from vigil.subjects import SessionKey


class Shares:
    """Who is busy, and who waits, person by person.

    >>> shares = Shares(1)
    >>> a, b = SessionKey.of("ann", "vigil", "a"), SessionKey.of("ann", "vigil", "b")
    >>> shares.begin(a), shares.begin(b), shares.begin(SessionKey.of("bob", "vigil", "c"))
    (True, False, True)
    >>> shares.end(a) == b, shares.end(b)
    (True, None)
    """

    def __init__(self, per_user_max: int) -> None:
        self._per_user_max = per_user_max
        self._busy: dict[str, set[SessionKey]] = {}
        self._lines: dict[str, deque[SessionKey]] = {}

    def begin(self, key: SessionKey) -> bool:
        """Whether the session may be opened now; if not, it waits until :meth:`end` returns it."""
        busy = self._busy.setdefault(key.user, set())
        if key not in busy and len(busy) >= self._per_user_max:
            self._lines.setdefault(key.user, deque()).append(key)
            return False
        busy.add(key)
        return True

    def go_on(self, key: SessionKey) -> None:
        """Count a session that is open, and busy again: it asks nobody."""
        self._busy.setdefault(key.user, set()).add(key)

    def end(self, key: SessionKey) -> SessionKey | None:
        """Count the session no more; return who of that person may be opened in its place."""
        busy, line = self._busy.get(key.user, set()), self._lines.get(key.user)
        busy.discard(key)
        following = None
        if line and len(busy) < self._per_user_max:
            following = line.popleft()
            busy.add(following)
        if not line:
            self._lines.pop(key.user, None)
        if not busy:
            self._busy.pop(key.user, None)
        return following

    @property
    def waiting(self) -> int:
        """How many sessions wait."""
        return sum(map(len, self._lines.values()))
