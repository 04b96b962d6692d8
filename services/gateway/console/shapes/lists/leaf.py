"""A long list in pages: where in it one is, as the address says, and where it goes on. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Generic, TypeVar
from urllib.parse import urlencode

import msgspec

T = TypeVar("T")
DIGITS_MAX: Final = 6


class ListPart(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """What of a list a page shows."""

    shown: tuple[T, ...]
    further: str = ""
    """The query that leads on; empty: that was all, or all that can be asked for."""
    first: str | None = None
    """The query that leads to its beginning; None: this is it."""
    is_cut: bool = False
    """Whether there may be more than can be asked for."""


class Leaf(msgspec.Struct, frozen=True, kw_only=True):
    """Where in a list a page is."""

    name: str
    """The parameter that says how many come before it."""
    start: int
    size: int
    kept: dict[str, str]
    """What else the address says, and goes on saying."""

    def asked(self, limit_max: int) -> int:
        """Return how many to ask for, of the beginning: one more than are shown tells whether it
        goes on."""
        return min(self.start + self.size + 1, limit_max)

    def part(self, found: Sequence[T], limit_max: int | None = None) -> ListPart[T]:
        """Return what is shown of the beginning of a list.

        Args:
            limit_max: more than that are never found; None: all are.
        """
        end = self.start + self.size
        more = len(found) > end
        return ListPart(
            shown=tuple(found[self.start : end]),
            further=self.query(end) if more else "",
            first=self.query(0) if self.start else None,
            is_cut=not more and limit_max is not None and len(found) >= limit_max,
        )

    def query(self, start: int) -> str:
        """Return the query that leads to so many before it."""
        return urlencode(self.kept | ({self.name: str(start)} if start else {}))


def leaf_of(query: Mapping[str, str], name: str, size: int, kept: Iterable[str] = ()) -> Leaf:
    """Return where in a list an address is; what is no number is its beginning.

    >>> leaf = leaf_of({"rows": "2", "state": "failed"}, "rows", 2, ("state",))
    >>> part = leaf.part(["a", "b", "c", "d", "e"])
    >>> part.shown, part.further, part.first
    (('c', 'd'), 'state=failed&rows=4', 'state=failed')
    >>> leaf.asked(500), leaf.part(["a", "b", "c"], 3).is_cut
    (5, True)
    >>> leaf_of({"rows": "-1"}, "rows", 2).start
    0
    """
    said = query.get(name, "")
    is_number = said.isascii() and said.isdecimal() and len(said) <= DIGITS_MAX
    return Leaf(
        name=name,
        start=int(said) if is_number else 0,
        size=size,
        kept={one: query[one] for one in kept if query.get(one)},
    )


def leaves_of(query: Mapping[str, str], sizes: Mapping[str, int], size: int) -> dict[str, Leaf]:
    """Return where each column of a board is: its beginning; of one status that is asked for, that
    one alone, in pages.

    Args:
        sizes: how many each column shows.
        size: how many a page of one status shows.

    >>> [*leaves_of({}, {"open": 25, "done": 10}, 50)], [*leaves_of({"status": "put"}, {}, 50)]
    (['open', 'done'], ['put'])
    """
    if status := query.get("status", ""):
        return {status: leaf_of(query, "after", size, ("status",))}
    return {one: leaf_of({}, "after", shown) for one, shown in sizes.items()}
