"""Facts that a source names, as whoever asks for it is shown them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from ..contracts import Instant
from ..contracts.board import SourceFacts
from ..fields.bodies import Answer
from ..zones.database import zone_named
from .shape import words_of
from .shown import described, named_of
from .wanted import WantedFact, shapes_of_wanted


class FactView(Answer, frozen=True, kw_only=True):
    """A fact that is named, and what is known of it."""

    name: str
    shape: str
    where: str
    """Where its value is found without a model; empty: runs tell it."""
    news: str
    """Which changes of it are news, as it was named; empty: those that are for its shape."""
    value: str
    """Empty: nothing is known yet."""
    text: str
    """What it is and was, in words; empty: nothing is known yet."""
    since: Instant | None
    """When it was first told so."""
    at: Instant | None
    """When it was last told so."""


def views_of(
    facts: Mapping[str, WantedFact], source: SourceFacts | None, zone: str, now: datetime
) -> tuple[FactView, ...]:
    """Return the facts that a source names, in its order.

    Args:
        source: what is known of them, if anything is.
        zone: IANA name of the clocks of whose they are.
        now: aware, UTC.
    """
    clocks = zone_named(zone)
    known = {one.name: one for one in named_of(shapes_of_wanted(facts), source)}
    return tuple(
        FactView(
            name=name,
            shape=words_of(wanted.shape),
            where=wanted.where,
            news=wanted.rule,
            value=one.value if one else "",
            text=described(one, clocks, now) if one else "",
            since=one.since if one else None,
            at=one.at if one else None,
        )
        for name, wanted in facts.items()
        for one in [known.get(name)]
    )
