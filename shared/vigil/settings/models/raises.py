"""By how much the caps of an account were raised for a day, without a restart (LOOPS L-21). Pure.

An entry of CONFIG for each account that was: a person's, whose word raises it, an agent's and the
instance's, which an admin raises. `budget.raise_max` bounds what it comes to, whoever writes such
an entry.
"""

from __future__ import annotations

import contextlib
import math
from typing import Final

import msgspec
from msgspec.structs import replace

from ...contracts.base import Instant
from ...subjects import Scope, token_of

PREFIX: Final = "raised."
INSTANCE: Final = "instance.all"
TIMES_MAX: Final = 1000
DATES_MAX: Final = 3
"""Somewhere on earth it's always one of two dates, or of three."""


class Raise(msgspec.Struct, frozen=True, kw_only=True):
    """What an account may use on a day beyond its caps."""

    day: str
    """Of the account: on another one the caps hold as configured."""
    times: int
    """So often what a cap is, is added to it; 0: it was taken back."""
    at: Instant
    by: str
    """The person who raised it."""
    others: dict[str, int] = {}
    """The `times` of dates beside that, of `DATES_MAX`: whoever moves to another zone may have
    today what was tomorrow, or yesterday."""


def of_person(user: str) -> str:
    """Return how a person's account is called, as in keys of BUDGETS."""
    return f"owner.{token_of(user)}"


def of_agent(agent: str) -> str:
    """Return how an agent's account is called."""
    return f"agent.{agent}"


def accounts_of(whose: Scope) -> tuple[str, str, str]:
    """Return the accounts that stop what an agent does for a person, and that may be raised.

    >>> accounts_of(Scope("vigil", "ann"))[1:]
    ('agent.vigil', 'instance.all')
    """
    return of_person(whose.owner), of_agent(whose.agent), INSTANCE


def read(value: bytes | None) -> Raise | None:
    """Return what an entry holds; None: nothing that can be read, so the caps hold."""
    with contextlib.suppress(msgspec.MsgspecError):
        return msgspec.json.decode(value, type=Raise) if value else None
    return None


def times_on(found: Raise | None, day: str) -> int:
    """Return by how much caps are raised on a day by what an entry holds."""
    if found is None:
        return 0
    return found.times if day == found.day else found.others.get(day, 0)


def joined(found: Raise | None, wanted: Raise, *, is_least: bool = False) -> Raise:
    """Return what an entry holds once a raise is in it, beside those of other dates.

    Args:
        is_least: whether more than is wanted stays.
    """
    if found is None:
        return wanted
    if is_least and times_on(found, wanted.day) >= wanted.times:
        return found
    known = found.others | {found.day: found.times}
    newest = sorted(known.keys() | {wanted.day})[-DATES_MAX:]
    others = {day: known[day] for day in newest if day != wanted.day}
    return replace(wanted, others=others)


def factor(times: int, most: float) -> float:
    """Return what caps are multiplied by.

    Args:
        most: `budget.raise_max`.

    >>> factor(0, 2.0), factor(1, 2.0), factor(9, 2.0), factor(1, 1.5)
    (1.0, 2.0, 2.0, 1.5)
    """
    return float(max(min(1 + times, most), 1))


def counted(times: int, most: float) -> int:
    """Return how many of those times do anything: no more than reach `most`.

    >>> counted(5, 2.0), counted(5, 2.5), counted(1, 10.0), counted(3, 1.0)
    (1, 2, 1, 0)
    """
    return min(times, max(math.ceil(most) - 1, 0))


def next_times(times: int, most: float) -> int | None:
    """Return the `times` of the next raise; None: `most` is reached.

    >>> next_times(0, 2.0), next_times(1, 2.0), next_times(0, 1.0), next_times(1, 2.5)
    (1, None, None, 2)
    """
    return times + 1 if factor(times, most) < most else None
