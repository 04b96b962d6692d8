"""What comes up again and again, on several days or in several conversations (SPEC C-6). Pure.

Memories that association found to be near one another are one matter. A matter that came up on
three occasions becomes an observation, made of its members: it says so, and what the newest of them
says. It is made anew only once the matter came up twice as often. What descends from content from
outside has no part in it: nobody else is to make a habit of somebody's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from vigil.contracts import IMPORTANCE, Memory
from vigil.subjects import token_of

from .decide import families

SOURCE: Final = "cortex:observations"
WITHIN: Final = timedelta(days=30)
"""What is older is no part of a matter any more."""
OCCASIONS_MIN: Final = 3
MEMBERS_MAX: Final = 20
"""That an observation names, the newest."""
QUOTED_MAX: Final = 300
"""Characters of the newest."""
MADE_MAX: Final = 10
"""In one pass, those that came up most often."""


class Remark(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that may be part of a matter."""

    id: str
    num: int
    thread: str
    content: str
    at: datetime

    @property
    def occasion(self) -> tuple[str, str]:
        """The conversation and the day."""
        return self.thread, f"{self.at:%Y-%m-%d}"


def observations(
    said: Sequence[Remark],
    near: Iterable[tuple[str, str]],
    known: Iterable[Iterable[str]],
    now: datetime,
) -> list[Memory]:
    """Return the observations to be made.

    Args:
        near: pairs of ids that are associated.
        known: the members of each observation that was ever made, whatever became of it.
    """
    by_id = {one.id: one for one in said}
    links: dict[str, list[str]] = {}
    for one, other in near:
        if one in by_id and other in by_id:
            links.setdefault(one, []).append(other)
    made = [frozenset(one) for one in known]
    found: list[tuple[int, Memory]] = []
    for ids in families(sorted(by_id), lambda one: links.get(one, ())):
        members = sorted((by_id[i] for i in ids), key=lambda one: (one.at, one.num))
        count = _occasions(members)
        if count < OCCASIONS_MIN:
            continue
        before = max((_occasions([m for m in members if m.id in one]) for one in made), default=0)
        if count >= 2 * before:
            found.append((count, _observation(members, count, now)))
    found.sort(key=lambda one: (-one[0], one[1].id))
    return [memory for _, memory in found[:MADE_MAX]]


def _occasions(members: Iterable[Remark]) -> int:
    return len({one.occasion for one in members})


def _observation(members: Sequence[Remark], count: int, now: datetime) -> Memory:
    first, newest = members[0], members[-1]
    text = " ".join(newest.content.split())
    quoted = text if len(text) <= QUOTED_MAX else f"{text[:QUOTED_MAX]}…"
    ids = tuple(one.id for one in members[-MEMBERS_MAX:])
    return Memory(
        id=token_of("observation", *ids),
        content=f"Came up {count} times from {first.at:%Y-%m-%d} to {newest.at:%Y-%m-%d}: {quoted}",
        created_at=now,
        type="observation",
        importance=IMPORTANCE["observation"],
        source=SOURCE,
        occurred_at=newest.at,
        provenance=ids,
    )
