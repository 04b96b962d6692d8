"""What the bucket BUDGETS keeps: the accounts of a day, and what a person's calls came to. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import msgspec

from .base import Instant, Record

OTHER: Final = "other"
"""The cause of calls beyond those that have rows of their own."""
COSTS: Final = "costs"
"""Second part of the key of such a record: ``{day}.costs.{hash of the person}``."""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What is set aside and what is used of a day, in tokens and micro-USD."""

    reserved: int = 0
    used: int = 0
    reserved_micro_usd: int = 0
    used_micro_usd: int = 0
    warned: str = ""
    """Who is told that a cap is nearly reached: a hash of the person and agent that were first."""


class RaiseOffer(Record, frozen=True, kw_only=True):
    """What a person's word raises their limit to, for a day."""

    day: str
    """The day that it holds for: a date in the zone of the person's account."""
    times: int
    """So often what the limit is, is added to it then."""
    most: str
    """The limit then, in words."""
    ends_at: Instant | None = None
    """When that day ends; none in what was offered while days were UTC's."""
    is_newest: bool = True
    """Whether the person has said nothing since: only then "more" alone means this."""
    is_taken: bool = False
    """Whether they said so."""

    def is_over(self, now: datetime) -> bool:
        """Whether that day has ended; aware."""
        if self.ends_at is None:
            return self.day != str(now.astimezone(UTC).date())
        return now >= self.ends_at

    @property
    def words(self) -> str:
        """The offer as it stands in the notice."""
        return f'say "more" to have {self.most} today'


class CostRow(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of settled calls: tokens by their kinds, money in micro-USD."""

    agent: str
    cause: str
    """The goal or the row of the timetable, or the thread of the session or of the one that started
    it; `OTHER`: of more than have rows."""
    tier: str
    model: str
    calls: int = 0
    calls_unpriced: int = 0
    """Those of them without a price; they are not in `micro_usd`."""
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    micro_usd: int = 0


class DayOfCosts(msgspec.Struct, frozen=True, kw_only=True):
    """What a person's calls of a day of their zone came to."""

    user: str
    rows: tuple[CostRow, ...] = ()
