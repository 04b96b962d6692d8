"""What is shown of a thing, a field at a time: in a list, or of one alone. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

TEXT_LENGTH_MAX: Final = 100
"""Characters of a text in a column; the rest is shown by `show`."""


class Column(NamedTuple):
    """One column of a list, or one field of a thing that is shown.

    Args:
        title: what stands above it.
        of: the name of a field, or a function from the thing to what is shown.
        is_instant: it is a point in time: ISO 8601, or an aware datetime.
        rank: the higher, the sooner it's left out where a terminal is too narrow for all.
        length_max: characters that are shown of it; 0: all.
    """

    title: str
    of: str | Callable[[Mapping[str, Any]], object]
    is_instant: bool = False
    rank: int = 0
    length_max: int = 0

    def value(self, item: Mapping[str, Any]) -> object:
        """Return what `item` has of it; None or an empty text if it has none.

        >>> Column("ID", "id").value({"id": "a1"}), Column("TOOL", "tool").value({})
        ('a1', None)
        """
        found = item.get(self.of) if isinstance(self.of, str) else self.of(item)
        return short(found, self.length_max) if self.length_max and found else found


def short(text: object, length_max: int = TEXT_LENGTH_MAX) -> str:
    """Return the beginning of a text, with a mark if that isn't all.

    >>> short("tea at five", 3)
    'tea…'
    """
    whole = str(text)
    return whole if len(whole) <= length_max else f"{whole[:length_max]}…"


def history(*state: Column, has_cause: bool = False) -> tuple[Column, ...]:
    """Return the columns of how a thing came to be as it is; `state` is what is shown of it.

    >>> [one.title for one in history(Column("STATUS", "status"))]
    ['REVISION', 'AT', 'STATUS', 'BY', 'WHY']
    """
    cause = (Column("CAUSE", "cause"),) if has_cause else ()
    begin = Column("REVISION", "revision"), Column("AT", "at", is_instant=True)
    return (*begin, *state, Column("BY", "by"), Column("WHY", "why"), *cause)
