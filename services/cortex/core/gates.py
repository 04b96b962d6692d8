"""The gates an autonomous message must pass (SPEC S-7). Asked twice: before the model is
called, because that is cheap, and when the turn is made, because that is what counts."""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from vigil.backoff import Backoff
from vigil.contracts import Counters

HOUR_MS: Final = 3_600_000
ASKED_FREE: Final = 10
"""So many exchanges in a row an agent plans by itself as it likes, if the person hears of none."""
LATER: Final = Backoff(60.0, 3_600.0)
"""How long it waits before each further one: to look each hour is watch enough for what nobody
ordered."""
ORDERED_LATER: Final = Backoff(60.0, 600.0)
"""The same of what the person ordered, as a watch over a night."""
REMINDERS_SHARE: Final = 3
"""One in so many of an hour's ordered messages is left to reminders: of 12 four. What a row tells
is kept for a digest when it's refused; a reminder would be lost (SPEC S-7)."""


class SpeechLimits(Protocol):
    """What is configured of them; the policy of a session has it."""

    @property
    def ordered_per_hour(self) -> int: ...

    @property
    def max_consecutive(self) -> int: ...

    @property
    def cooldown_ms(self) -> int: ...


class Blocked(msgspec.Struct, frozen=True):
    """A refusal: a stable code, and a sentence for the note."""

    code: str
    text: str


def check(
    counters: Counters,
    *,
    is_ordered: bool,
    is_locked: bool,
    now_ms: int,
    policy: SpeechLimits,
    can_wait: bool = False,
) -> Blocked | None:
    """Return why an autonomous message may not be sent now, or None if it may.

    `is_ordered`: the person ordered it (a kept reminder), which exempts it from cap and
    cooldown. Exactly `cooldown_ms` after the last one passes; a clock that went back blocks, for
    an hour at most: what was said by one that was further ahead doesn't count.
    `can_wait`: it is kept if it's refused, so it leaves room for what isn't.

    >>> from services.cortex.core.draft.policy import Policy
    >>> check(Counters(consecutive=3), is_ordered=False, is_locked=False, now_ms=0,
    ...       policy=Policy()).code
    'cap'
    """
    if is_locked:
        return Blocked("locked", "the session's state could not be read: nothing autonomous")
    if is_ordered:
        recent = _lately(counters.ordered_ms, now_ms)
        most = policy.ordered_per_hour
        if can_wait:
            most -= most // REMINDERS_SHARE
        if len(recent) >= most:
            limit = f"the limit is {most}"
            return Blocked(
                "ordered_rate", f"{len(recent)} ordered messages within an hour; {limit}"
            )
        return None
    if counters.consecutive >= policy.max_consecutive:
        cap = f"the cap is {policy.max_consecutive}"
        run = f"{counters.consecutive} messages in a row without an answer from the person"
        return Blocked("cap", f"{run}; {cap}")
    left_ms = cooldown_left_ms(counters, now_ms=now_ms, policy=policy)
    if left_ms:
        return Blocked("cooldown", f"{left_ms} of the {policy.cooldown_ms} ms cooldown are left")
    return None


def cooldown_left_ms(counters: Counters, *, now_ms: int, policy: SpeechLimits) -> int:
    """Return how long the next message that the person didn't order has to wait.

    >>> from services.cortex.core.draft.policy import Policy
    >>> said = Counters(last_autonomous_ms=HOUR_MS)
    >>> [cooldown_left_ms(said, now_ms=at, policy=Policy()) for at in (HOUR_MS + 5_000, 1, 0)]
    [10000, 3614999, 0]
    """
    last = counters.last_autonomous_ms
    if last is None or last - now_ms >= HOUR_MS:
        return 0
    return max(last + policy.cooldown_ms - now_ms, 0)


def later_s(counters: Counters, *, is_ordered: bool = False) -> float:
    """Return how long after others the next exchange waits that the agent plans by itself: it may
    plan one in each, stay silent, and would be asked without an end.

    >>> [later_s(Counters(asked=asked)) for asked in (10, 11, 12, 20)]
    [0.0, 60.0, 120.0, 3600.0]
    >>> later_s(Counters(asked=20), is_ordered=True)
    600.0
    """
    beyond = counters.asked - ASKED_FREE
    return (ORDERED_LATER if is_ordered else LATER).after(beyond) if beyond > 0 else 0.0


def _lately(said_ms: tuple[int, ...], now_ms: int) -> tuple[int, ...]:
    """Return which were within an hour of now. One that is further ahead was said by a clock that
    was set back since, and would count until that time is there again."""
    return tuple(at for at in said_ms if abs(now_ms - at) < HOUR_MS)


def count(counters: Counters, *, is_ordered: bool, now_ms: int) -> Counters:
    """Return the counters after one more autonomous message."""
    if is_ordered:
        recent = _lately(counters.ordered_ms, now_ms)
        return msgspec.structs.replace(counters, ordered_ms=(*recent, now_ms), asked=0)
    return msgspec.structs.replace(
        counters, consecutive=counters.consecutive + 1, last_autonomous_ms=now_ms
    )


def reset(counters: Counters) -> Counters:
    """Return the counters after a user message: cap and cooldown start anew."""
    return Counters(ordered_ms=counters.ordered_ms)
