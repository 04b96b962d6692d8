"""The daily token cap on the real broker: never under-counted, whatever happens in between."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from services.cortex.thought.budget import (
    BudgetExceeded,
    Reservation,
    TokenBudget,
    estimate,
    tokens_of,
)
from services.cortex.thought.model import ModelRequest, Situation
from services.cortex.thought.tools import specs
from tests.support.stack import Stack
from vigil.bus.bus import Bus
from vigil.bus.kv import KeyValue
from vigil.contracts import Row, TextBlock, Usage
from vigil.errors import OutcomeUnknown, Unavailable

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


class HandClock:
    """A clock that goes only when it is told to."""

    def __init__(self, at: datetime = NOON) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()


async def account(bus: Bus, day: str = "2026-11-20") -> tuple[int, int]:
    entry = await KeyValue(bus, "BUDGETS").get(f"tokens.{day}")
    assert entry is not None
    found = msgspec.json.decode(entry.value)
    return found["reserved"], found["used"]


async def test_reserved_before_and_settled_after(bare: Stack) -> None:
    """C-9: durable when reserve returns; settled with what it really took."""
    bus = await bare.bus("cortex")
    budget = TokenBudget(bus, 1000, HandClock())
    reservation = await budget.reserve(400)
    assert await account(bus) == (400, 0)
    await budget.settle(reservation, 150)
    assert await account(bus) == (0, 150)


async def test_the_cap_is_exact_and_says_when_it_ends(bare: Stack) -> None:
    """C-9: hard stop."""
    budget = TokenBudget(await bare.bus("cortex"), 1000, HandClock())
    await budget.settle(await budget.reserve(600), 500)
    await budget.reserve(500)
    with pytest.raises(BudgetExceeded, match="1000 tokens is reached") as caught:
        await budget.reserve(1)
    assert caught.value.resets_at == datetime(2026, 11, 21, tzinfo=UTC)


async def test_a_cap_of_nothing_allows_nothing(bare: Stack) -> None:
    budget = TokenBudget(await bare.bus("cortex"), 0, HandClock())
    for tokens in (0, 1):
        with pytest.raises(BudgetExceeded):
            await budget.reserve(tokens)


async def test_fifty_at_once_never_exceed_the_cap(bare: Stack) -> None:
    """C-9: five replicas with ten callers each, one cap; exactly what fits is granted."""
    buses = [await bare.bus("cortex") for _ in range(5)]
    budgets = [TokenBudget(bus, 1000, HandClock()) for bus in buses]
    outcomes = await asyncio.gather(
        *(budgets[n % 5].reserve(70) for n in range(50)), return_exceptions=True
    )
    granted = [o for o in outcomes if isinstance(o, Reservation)]
    refused = [o for o in outcomes if isinstance(o, BudgetExceeded)]
    assert (len(granted), len(refused)) == (14, 36)
    assert await account(buses[0]) == (980, 0)
    await asyncio.gather(*(budgets[n % 5].settle(r, 60) for n, r in enumerate(granted)))
    assert await account(buses[0]) == (0, 840)


async def test_settling_meanwhile_never_loses_a_count(bare: Stack) -> None:
    """C-9: every value that was ever stored keeps within the cap, and the sum is right."""
    buses = [await bare.bus("cortex") for _ in range(5)]
    budgets = [TokenBudget(bus, 1000, HandClock()) for bus in buses]
    totals: list[int] = []

    def record(_: str, value: bytes | None) -> None:
        found = msgspec.json.decode(value or b"{}")
        totals.append(found["reserved"] + found["used"])

    watch = await KeyValue(buses[0], "BUDGETS").watch(record)

    async def call(n: int) -> int:
        try:
            reservation = await budgets[n % 5].reserve(70)
        except BudgetExceeded:
            return 0
        await budgets[n % 5].settle(reservation, 50)
        return 50

    spent = sum(await asyncio.gather(*(call(n) for n in range(50))))
    await watch.close()
    assert await account(buses[0]) == (0, spent)
    assert 0 < spent <= 1000
    assert max(totals) <= 1000


async def test_a_crash_between_over_counts(bare: Stack) -> None:
    """C-9: another process finds the tokens taken, until the day ends."""
    clock = HandClock()
    await TokenBudget(await bare.bus("cortex"), 1000, clock).reserve(900)
    survivor = TokenBudget(await bare.bus("cortex"), 1000, clock)
    with pytest.raises(BudgetExceeded):
        await survivor.reserve(200)
    clock.at = datetime(2026, 11, 21, 0, 0, tzinfo=UTC)
    await survivor.reserve(200)


async def test_it_settles_on_the_day_of_the_reservation(bare: Stack) -> None:
    bus = await bare.bus("cortex")
    clock = HandClock(datetime(2026, 11, 20, 23, 59, 59, tzinfo=UTC))
    budget = TokenBudget(bus, 1000, clock)
    reservation = await budget.reserve(100)
    clock.at += timedelta(seconds=2)
    await budget.settle(reservation, 80)
    assert await account(bus) == (0, 80)
    await budget.reserve(10)
    assert await account(bus, "2026-11-21") == (10, 0)


async def test_more_used_than_reserved_is_counted(bare: Stack) -> None:
    bus = await bare.bus("cortex")
    budget = TokenBudget(bus, 1000, HandClock())
    await budget.settle(await budget.reserve(10), 2000)
    assert await account(bus) == (0, 2000)
    with pytest.raises(BudgetExceeded):
        await budget.reserve(1)


async def test_an_unknown_outcome_over_counts(bare: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """C-9: the write is stored, its answer is lost: raised, and never taken back."""
    bus = await bare.bus("cortex")
    budget = TokenBudget(bus, 1000, HandClock())
    publish = bus.publish

    async def lose_the_answer(*args: Any, **kwargs: Any) -> Any:
        await publish(*args, **kwargs)
        raise OutcomeUnknown("the answer was lost")

    reservation = await budget.reserve(100)
    monkeypatch.setattr(bus, "publish", lose_the_answer)
    with pytest.raises(Unavailable):
        await budget.reserve(300)
    with pytest.raises(Unavailable):
        await budget.settle(reservation, 100)
    monkeypatch.undo()
    assert await account(bus) == (300, 100)


async def test_an_entry_that_can_not_be_read_fails_closed(bare: Stack) -> None:
    bus = await bare.bus("cortex")
    await KeyValue(bus, "BUDGETS").put("tokens.2026-11-20", b"not json")
    with pytest.raises(Unavailable, match="can't be read"):
        await TokenBudget(bus, 1000, HandClock()).reserve(1)


async def test_settling_twice_never_goes_below_zero(bare: Stack) -> None:
    bus = await bare.bus("cortex")
    budget = TokenBudget(bus, 1000, HandClock())
    reservation = Reservation(key="tokens.2026-11-20", tokens=100)
    await budget.settle(reservation, -5)
    assert await account(bus) == (0, 0)


@pytest.mark.parametrize("text", ["hello world " * 100, "こんにちは" * 100, "🙂" * 100, ""])
def test_the_estimate_covers_the_request_and_the_answer(text: str) -> None:
    """A third of the bytes: at least a token for each character of three bytes."""
    request = ModelRequest(
        session_key="ann:vigil:t1",
        system=(text, text),
        rows=(Row(role="user", blocks=(TextBlock(text=text),), at=NOON, source="person"),),
        tools=specs(),
        max_tokens=1000,
        timeout_s=5.0,
        situation=Situation(
            now=NOON, timezone="UTC", user="a", agent="b", follow_ups={}, autonomy_enabled=True
        ),
    )
    assert estimate(request) >= 1000 + len(text.encode()) + len(msgspec.json.encode(specs())) // 3


def test_every_token_counts() -> None:
    usage = Usage(
        model="m", input_tokens=1, output_tokens=20, cache_read_tokens=300, cache_write_tokens=4000
    )
    assert tokens_of(usage) == 4321
