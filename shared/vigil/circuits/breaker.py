"""The breaker of one component: closed, open, half open (SPEC C-5). Pure.

    closed     calls pass; `failures_max` failures in a row open it
    open       calls are refused until `until`, for longer each time it opens in a row
    half open  one call passes, as a trial: its success closes it, its failure opens it anew; one
               that says nothing until `until` is given up, and the next call is the trial

Every call that passes gets the number of the breaker's last change. What a call says counts only
while that number is the newest: one that began before it opened neither closes it nor keeps it
open.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from ..backoff import Backoff
from ..contracts.board import CircuitState
from ..settings.sections import HealthSection

TRIAL_S: Final = 10.0
"""A refused call may come back so soon while another one is tried: whoever was told to wait for a
model does once it's asked again, and not for as long as it was left alone."""
GRACE_S: Final = 10.0
"""For what goes on around a call."""


class BreakerTerms(msgspec.Struct, frozen=True, kw_only=True):
    """When a breaker opens, and for how long."""

    failures_max: int = 3
    """Failures in a row that open it (SPEC C-5)."""
    open: Backoff = Backoff(30.0, 300.0)
    """How long it's open: twice as long each time in a row."""
    trial_s: float = 120.0
    """So long a trial is waited for: longer than a call may take."""

    @classmethod
    def of(cls, config: HealthSection, *, patience_s: float) -> BreakerTerms:
        """Return what is configured, for calls that end after `patience_s` at the latest."""
        return cls(
            open=Backoff(config.circuit_open_s, config.circuit_open_s_max),
            trial_s=patience_s + GRACE_S,
        )


class Breaker(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a component.

    >>> from datetime import UTC
    >>> now, terms = datetime(2026, 1, 5, tzinfo=UTC), BreakerTerms(failures_max=1)
    >>> tripped = failed(Breaker(), 0, now, terms, "no answer")
    >>> tripped.state, pass_of(tripped)
    ('open', None)
    """

    state: CircuitState = "closed"
    number: int = 0
    """Of its last change."""
    failures: int = 0
    """In a row."""
    openings: int = 0
    """In a row."""
    reason: str = ""
    opened_at: datetime | None = None
    until: datetime | None = None


def pass_of(breaker: Breaker) -> int | None:
    """Return the number that a call passes with; None: it's refused, or the trial (`is_due`)."""
    return breaker.number if breaker.state == "closed" else None


def is_due(breaker: Breaker, now: datetime, terms: BreakerTerms) -> bool:
    """Whether the next call is let through as a trial: also where the clock was set back since, and
    it would be refused for longer than any is."""
    if breaker.state == "closed" or breaker.until is None:
        return False
    longest_s = max(terms.open.max_s, terms.trial_s)
    return not timedelta() < breaker.until - now <= timedelta(seconds=longest_s)


def trial(breaker: Breaker, now: datetime, terms: BreakerTerms) -> Breaker:
    """Return it half open: the call that asked passes with its new number."""
    return msgspec.structs.replace(
        breaker,
        state="half_open",
        number=breaker.number + 1,
        until=now + timedelta(seconds=terms.trial_s),
    )


def failed(
    breaker: Breaker,
    number: int,
    now: datetime,
    terms: BreakerTerms,
    reason: str,
    wait_s: float = 0.0,
) -> Breaker:
    """Take in that the call that passed with `number` failed.

    Args:
        wait_s: how long the component itself wants to be left alone.
    """
    if number != breaker.number or breaker.state == "open":
        return breaker
    failures = breaker.failures + 1
    if breaker.state == "closed" and failures < terms.failures_max:
        return msgspec.structs.replace(breaker, failures=failures)
    return opened(breaker, now, terms, reason, failures=failures, wait_s=wait_s)


def opened(
    breaker: Breaker,
    now: datetime,
    terms: BreakerTerms,
    reason: str,
    *,
    failures: int,
    wait_s: float = 0.0,
) -> Breaker:
    """Return it open from now on, for longer than the last time if that is just over."""
    openings = breaker.openings + 1
    open_s = min(max(terms.open.after(openings), wait_s), terms.open.max_s)
    return Breaker(
        state="open",
        number=breaker.number + 1,
        failures=failures,
        openings=openings,
        reason=reason,
        opened_at=breaker.opened_at or now,
        until=now + timedelta(seconds=open_s),
    )


def succeeded(breaker: Breaker, number: int) -> Breaker:
    """Take in that the call that passed with `number` was answered."""
    if number != breaker.number or breaker.state == "open":
        return breaker
    return closed(breaker) if breaker.state == "half_open" else _unfailed(breaker)


def _unfailed(breaker: Breaker) -> Breaker:
    return msgspec.structs.replace(breaker, failures=0) if breaker.failures else breaker


def unsaid(breaker: Breaker, number: int, now: datetime) -> Breaker:
    """Take in that the call with `number` ended and says nothing about the component: the next one
    is the trial, if this was."""
    if number != breaker.number or breaker.state != "half_open":
        return breaker
    return msgspec.structs.replace(breaker, state="open", number=breaker.number + 1, until=now)


def closed(breaker: Breaker) -> Breaker:
    """Return it closed: a trial succeeded, or a person says so."""
    return Breaker(number=breaker.number + 1)
