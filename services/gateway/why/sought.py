"""What a search looks for: an id, or the beginning of one; and among whose records. Pure.

Few ids are part of a subject, and no subject is found by its beginning. So beginnings cost no reads
of their own in the log: a search for a whole id that finds nothing has read all that it may, and
what it met on the way that begins so is noted here.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

import msgspec

from vigil.contracts import short_name
from vigil.errors import InvalidInput
from vigil.layout import LogLayout
from vigil.subjects import Scope, SessionKey, dead_of

BEGINNING_MIN: Final = 4
"""Characters; of fewer too much begins so."""
SHOWN_MAX: Final = 5
NAMED: Final = {"approval": "a", "goal": "g"}
"""Kinds of the board that have short names, and the letter with which these begin."""


class SoughtId:
    """An id that is looked for. If nothing has it, it may be the beginning of one that was met.

    >>> sought = SoughtId("abcd")
    >>> sought.is_among("abcd12", "x"), sought.whole(), sought.is_among("abcd")
    (False, 'abcd12', True)
    """

    def __init__(self, id_: str, *, is_whole: bool = False) -> None:
        self.id = id_
        self.may_begin = not is_whole and len(id_) >= BEGINNING_MIN
        self.needle = msgspec.json.encode(id_)[1:-1]
        """What a record has in it that names it, or one that it begins."""
        self._begun: dict[str, None] = {}

    def is_among(self, *ids: str | None) -> bool:
        """Return whether it is one of these; note those that it begins."""
        if self.may_begin and len(self._begun) <= SHOWN_MAX:
            self._begun |= {one: None for one in ids if one and one.startswith(self.id)}
        return self.id in ids

    def note_called(self, subject: str) -> None:
        """Note what stands on the board there, if a person calls it so: a request, a goal.

        >>> sought = SoughtId("a7tr")
        >>> sought.note_called("board.vigil.ann.approval.0123456789abcdef0123456789abcdef")
        >>> sought.whole()
        '0123456789abcdef0123456789abcdef'
        """
        _, kind, id_ = subject.rsplit(".", 2)
        letter = NAMED.get(kind)
        if letter and self.may_begin and short_name(id_, letter) == self.id.lower():
            self._begun[id_] = None

    def whole(self) -> str | None:
        """Return the one that it's the beginning of, or the name, of those that were met; None: of
        none.

        Raises:
            InvalidInput: it is the beginning of several.
        """
        if len(self._begun) > 1:
            more = ", …" * (len(self._begun) > SHOWN_MAX)
            names = ", ".join(sorted(islice(self._begun, SHOWN_MAX))) + more
            raise InvalidInput("id", f"{self.id!r} is the beginning of several: {names}")
        return next(iter(self._begun), None)


class SearchScope(msgspec.Struct, frozen=True):
    """Whose records are looked at (of the board `nearest` first): a person's, a session's, all."""

    whose: tuple[Scope, ...]
    session: SessionKey | None = None
    nearest: tuple[Scope, ...] = ()

    def includes(self, key: SessionKey) -> bool:
        """Return whether a record of that session may be told about."""
        if self.session is not None:
            return key == self.session
        return any(one.covers(key) for one in self.whose)

    def roots(self, layout: LogLayout) -> tuple[tuple[str, str], ...]:
        """Return streams, and what replaces ``{K}`` in a filter there."""
        if self.session is not None:
            return ((self.session.stream, self.session.root),)
        logs = [(log, "session") for log in layout.logs] + [("SYSTEM", "system")]
        return tuple(
            (log, f"{kind}.{one.agent}.{one.owner}.*") for log, kind in logs for one in self.whose
        )

    @property
    def owners(self) -> tuple[Scope, ...]:
        """Whose things besides records of sessions are looked at."""
        return self.whose if self.session is None else (self.session.scope,)

    @property
    def letters(self) -> tuple[str, ...]:
        """The filters of the dead letters."""
        if self.session is not None:
            key = self.session
            return (f"dead.*.{key.agent}.{key.user}.{key.thread}",)
        return tuple(map(dead_of, self.whose))
