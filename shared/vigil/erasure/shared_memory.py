"""Which records of a memory that a team shares are a person's, and go with them. Pure.

What somebody saved into it is theirs: by their own hand, or by a session of theirs. With it goes
what was made of it: a summary holds its members word for word, and what names a memory as where it
came from says the same in other words. What they decided about the memories of others stays
decided: what they asked to forget, and what they undid, is written down once more without their
name.

What others said of the person stays, as it does in conversations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ..contracts import (
    MemoriesMerged,
    MemoriesUndone,
    MemoryForgotten,
    MemoryRecord,
    MemorySaved,
    decode_memory,
)
from ..errors import InvalidInput
from ..subjects import Scope, token_of

BY_NOBODY: Final = "erased"
"""In the place of who did it."""
NO_SOURCE: Final = "erased"


class Fate(msgspec.Struct, frozen=True, kw_only=True):
    """What is to become of a record."""

    goes: bool
    instead: MemoryRecord | None = None
    """To be stored before it goes."""


STAYS: Final = Fate(goes=False)
GOES: Final = Fate(goes=True)


class Sifting:
    """Looks at every record of all shared memories, in the order of the log.

    >>> Sifting("ann").is_theirs("session:ann:vigil:t1"), Sifting("ann").is_theirs("user:anna")
    (True, False)
    """

    def __init__(self, user: str) -> None:
        self._user = user
        self._known: dict[Scope, set[str]] = {}
        """Ids of the memories that stay."""
        self._gone: dict[Scope, set[str]] = {}
        """Ids of those that go."""

    def is_theirs(self, by: str) -> bool:
        """Whether that is who did it."""
        return by == f"user:{self._user}" or by.startswith(f"session:{self._user}:")

    def fate_of(self, subject: str, data: bytes) -> Fate:
        """Decide about the next record."""
        try:
            scope, record = Scope.of_subject(subject), decode_memory(data)
        except InvalidInput:
            # Nobody can use it; what may be the person's isn't kept for that.
            return GOES if self._user.encode() in data else STAYS
        if isinstance(record, MemorySaved | MemoriesMerged):
            return self._memory(scope, record)
        if not self.is_theirs(record.by):
            return STAYS
        if isinstance(record, MemoryForgotten):
            return Fate(goes=True, instead=_unnamed(record))
        if isinstance(record, MemoriesUndone):
            return Fate(goes=True, instead=_unnamed(record, source=NO_SOURCE))
        return GOES

    def _memory(self, scope: Scope, record: MemorySaved | MemoriesMerged) -> Fate:
        known, gone = self._known.setdefault(scope, set()), self._gone.setdefault(scope, set())
        memory = record.memory
        goes = self.is_theirs(record.by) or not gone.isdisjoint(memory.provenance)
        if isinstance(record, MemoriesMerged):
            # A member that is nowhere was erased, by an earlier run of this that was killed.
            goes = goes or not known.issuperset(record.merged_ids)
        (gone if goes else known).add(memory.id)
        return GOES if goes else STAYS


def _unnamed(record: MemoryForgotten | MemoriesUndone, **changes: Any) -> MemoryRecord:
    """Return a record that does the same and doesn't say who did it; each time the same."""
    values: Mapping[str, Any] = changes | {"by": BY_NOBODY, "id": token_of("unnamed", record.id)}
    return msgspec.structs.replace(record, **values)
