"""The daily token cap: reserved before a call, settled after it (SPEC C-9).

A bucket entry per UTC day, `{reserved, used}`, and one per person and day, changed by
compare-and-set, so that any number of replicas share one cap. Both are written at once; what one
grants is given back if the other refuses. What is unknown is counted: a crash
between reserve and settle, and a write whose answer was lost, leave their tokens counted until the
day ends. So the count may be too high, and is never too low as long as the estimate covers the
call.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final
from weakref import WeakValueDictionary

import msgspec

from vigil.bus.bus import Bus
from vigil.bus.kv import KeyValue
from vigil.clock import Clock
from vigil.contracts import Usage
from vigil.errors import Unavailable, VigilError, WrongLastSequence

from ..core.context.window import tokens_of_bytes
from .model import ModelRequest

ATTEMPTS_MAX: Final = 200
"""Lost races before it gives up; in each somebody wins, so only replicas' number counts."""


class BudgetExceeded(VigilError):
    """No more tokens may be used today; `resets_at` is when they may again."""

    def __init__(self, reason: str, resets_at: datetime) -> None:
        super().__init__(reason)
        self.reason = reason
        self.resets_at = resets_at


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens set aside for one call. `key` holds the day they count for."""

    key: str
    tokens: int
    user_key: str = ""
    """The account of the person it is for; empty: nobody's."""


class _Account(msgspec.Struct, frozen=True, kw_only=True):
    reserved: int = 0
    used: int = 0


_Change = Callable[[_Account], _Account]


class TokenBudget:
    """One cap for the whole instance, whatever agents there are, and of it a share for each person;
    0 allows nothing."""

    def __init__(
        self, bus: Bus, daily_tokens: int, clock: Clock, *, share_per_user: float = 1.0
    ) -> None:
        """`share_per_user`: of the cap, more than 0 and at most 1."""
        self._bucket = KeyValue(bus, "BUDGETS")
        self._daily_tokens = daily_tokens
        self._user_tokens = int(daily_tokens * share_per_user)
        self._clock = clock
        # Callers of one process queue here instead of losing races against each other.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._account = _Account()

    def seen(self) -> dict[str, float]:
        """Return the day's account as it was when this replica last changed it."""
        account = self._account
        return {"used": account.used, "reserved": account.reserved, "limit": self._daily_tokens}

    async def reserve(self, tokens: int, user: str = "") -> Reservation:
        """Set `tokens` aside; when this returns, they are counted, whatever crashes.

        Args:
            user: for whom: their share must have room for them, too.

        Raises:
            BudgetExceeded: they don't fit into what is left of the day.
            Unavailable: no answer from the broker; perhaps they are counted.
        """
        day = self._clock.now().astimezone(UTC).date()
        key = f"tokens.{day.isoformat()}"
        resets_at = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)

        user_key = f"{key}.{_name(user)}" if user and self._user_tokens < self._daily_tokens else ""
        # The person's first, and alone: who is over their share takes nothing of everybody's, not
        # even for a moment.
        if user_key:
            await self._change(user_key, _adding(tokens, self._user_tokens, resets_at, _OF_USER))
        try:
            self._account = await self._change(key, _adding(tokens, self._daily_tokens, resets_at))
        except BudgetExceeded:
            if user_key:
                await self._change(user_key, _exchanging(tokens, 0))
            raise
        return Reservation(key=key, tokens=tokens, user_key=user_key)

    async def settle(self, reservation: Reservation, used_tokens: int) -> None:
        """Count what the call really took, on the day of its reservation.

        A call whose outcome is unknown is settled with all that was reserved, or not at all.

        Raises:
            Unavailable: no answer from the broker; the reservation may stay counted.
        """
        exchange = _exchanging(reservation.tokens, used_tokens)
        keys = filter(None, (reservation.key, reservation.user_key))
        work = (self._change(key, exchange) for key in keys)
        account, *others = await asyncio.gather(*work, return_exceptions=True)
        if isinstance(account, _Account):
            self._account = account
        for result in (account, *others):
            if isinstance(result, BaseException):
                raise result

    async def _change(self, key: str, change: _Change) -> _Account:
        """Apply `change` once. An unknown outcome is raised: repeating could apply it twice."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            for _ in range(ATTEMPTS_MAX):
                entry = await self._bucket.get(key)
                account = _Account() if entry is None else _decode(key, entry.value)
                changed = change(account)
                value = msgspec.json.encode(changed)
                try:
                    if entry is None:
                        await self._bucket.create(key, value)
                    else:
                        await self._bucket.put(key, value, expect=entry.revision)
                except WrongLastSequence:
                    continue
                return changed
        raise Unavailable(f"{key}: lost {ATTEMPTS_MAX} races in a row")


def _adding(tokens: int, limit: int, resets_at: datetime, of_whom: str = "") -> _Change:
    def add(account: _Account) -> _Account:
        taken = account.reserved + account.used
        if taken + tokens > limit or limit == 0:
            setting = "model.daily_share_per_user" if of_whom else "model.daily_tokens"
            reason = (
                f"the daily limit of {limit} tokens{of_whom} is reached ({taken} taken, "
                f"{tokens} needed); it starts anew at 00:00 UTC, and {setting} raises it"
            )
            raise BudgetExceeded(reason, resets_at)
        return _Account(reserved=account.reserved + tokens, used=account.used)

    return add


def _exchanging(reserved: int, used_tokens: int) -> _Change:
    def exchange(account: _Account) -> _Account:
        return _Account(
            reserved=max(account.reserved - reserved, 0), used=account.used + max(used_tokens, 0)
        )

    return exchange


_OF_USER: Final = " for one person"


def _name(user: str) -> str:
    """Return what stands for a person in a key: their accounts outlive them for some days."""
    return hashlib.sha256(user.encode()).hexdigest()[:24]


def _decode(key: str, value: bytes) -> _Account:
    try:
        return msgspec.json.decode(value, type=_Account)
    except msgspec.MsgspecError as error:
        # Fail closed: without a count nothing may be spent.
        raise Unavailable(f"the budget entry {key} can't be read: {error}") from error


def estimate(request: ModelRequest) -> int:
    """Return the tokens to reserve for a call: a third of its bytes, and the longest answer.

    See `core.context.window` for why that is more than what most calls take.
    """
    sent = len(msgspec.json.encode((request.rows, request.tools)))
    sent += sum(len(part.encode()) for part in request.system)
    return tokens_of_bytes(sent) + request.max_tokens


def tokens_of(usage: Usage) -> int:
    """Return all tokens of a call: what was read from a cache counts, too."""
    return (
        usage.input_tokens
        + usage.output_tokens
        + usage.cache_read_tokens
        + usage.cache_write_tokens
    )
