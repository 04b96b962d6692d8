"""The daily caps on the real broker: never under-counted, whatever happens in between."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta
from typing import Any

import msgspec
import pytest

from services.cortex.model import ModelRequest, Situation
from services.cortex.thought.accounts import BudgetExceeded
from services.cortex.thought.budget import CallBudget, Estimate, Reservation, estimate
from services.cortex.thought.ledger import PaidCall
from services.cortex.thought.tools import specs
from tests.support.stack import Stack
from vigil.bus.kv import KeyValue
from vigil.clock import new_id
from vigil.contracts import Row, TextBlock, Usage
from vigil.contracts.costs import Account, DayOfCosts
from vigil.erasure.theirs import filters_of
from vigil.errors import OutcomeUnknown, Unavailable
from vigil.settings.models.caps import Caps
from vigil.settings.models.prices import PriceBand

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


class HandClock:
    """A clock that goes only when it is told to."""

    def __init__(self, at: datetime = NOON) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()


ANN = PaidCall(user="ann", agent="vigil", cause="t1", model="m")
PRICES = (PriceBand(since=date(2026, 1, 1), input=2, output=2),)


def most(tokens: int) -> Estimate:
    return Estimate(input_tokens=tokens, output_tokens=0)


def used(tokens: int) -> Usage:
    return Usage(model="m", input_tokens=tokens)


async def budget_on(stack: Stack, clock: HandClock | None = None, **config: Any) -> CallBudget:
    """Return one of a replica of its own, with a thousand tokens for everybody."""
    config = {"daily_tokens": 1000, "share_per_user": 1.0} | config
    return CallBudget(
        await stack.bus("cortex"),
        Caps(**config),
        clock or HandClock(),
        new_id=new_id,
        prices_of=lambda model: PRICES if model == "m" else (),
    )


async def accounts(stack: Stack, day: str = "2026-11-20") -> set[tuple[int, int]]:
    """Return (reserved, used) as the accounts of a day have it: one pair, if all of a chain do."""
    bus = await stack.bus("admin")
    found = await bus.read("KV_BUDGETS", [f"$KV.BUDGETS.{day}.>"])
    decoded = [
        msgspec.json.decode(one.data, type=Account) for one in found if ".costs." not in one.subject
    ]
    # What costs two micro-USD a token is counted as that everywhere.
    assert all(one.used_micro_usd == 2 * one.used for one in decoded)
    assert all(one.reserved_micro_usd == 2 * one.reserved for one in decoded)
    return {(one.reserved, one.used) for one in decoded}


async def test_reserved_before_and_settled_after(bare: Stack) -> None:
    """C-9: durable when reserve returns; settled with what it really took, and in the ledger."""
    budget = await budget_on(bare)
    reservation = await budget.reserve(ANN, most(400))
    assert await accounts(bare) == {(400, 0)}
    await budget.settle(reservation, used(150))
    assert await accounts(bare) == {(0, 150)}
    assert budget.seen() == {"used": 150, "reserved": 0, "limit": 1000}
    bus = await bare.bus("admin")
    (entry,) = await bus.read("KV_BUDGETS", ["$KV.BUDGETS.2026-11-20.costs.*"])
    (row,) = msgspec.json.decode(entry.data, type=DayOfCosts).rows
    assert (row.calls, row.input_tokens, row.micro_usd) == (1, 150, 300)


async def test_ten_at_once_on_two_replicas_with_room_for_three_make_three(bare: Stack) -> None:
    """Issue: exactly what fits is granted, in all accounts of the chain."""
    replicas = [await budget_on(bare, daily_usd=0.0006) for _ in range(2)]
    outcomes = await asyncio.gather(
        *(replicas[n % 2].reserve(ANN, most(100)) for n in range(10)), return_exceptions=True
    )
    granted = [o for o in outcomes if isinstance(o, Reservation)]
    refused = [o for o in outcomes if isinstance(o, BudgetExceeded)]
    assert (len(granted), len(refused)) == (3, 7)
    assert await accounts(bare) == {(300, 0)}
    await asyncio.gather(*(replicas[n % 2].settle(r, used(60)) for n, r in enumerate(granted)))
    assert await accounts(bare) == {(0, 180)}


async def test_settling_meanwhile_never_loses_a_count(bare: Stack) -> None:
    """C-9: every value that was ever stored keeps within the cap, and the sum is right."""
    replicas = [await budget_on(bare) for _ in range(5)]
    totals: list[int] = []

    def record(key: str, value: bytes | None) -> None:
        if key.endswith("instance.all") and value:
            account = msgspec.json.decode(value, type=Account)
            totals.append(account.reserved + account.used)

    watch = await KeyValue(await bare.bus("admin"), "BUDGETS").watch(record)

    async def call(n: int) -> int:
        try:
            reservation = await replicas[n % 5].reserve(ANN, most(70))
        except BudgetExceeded:
            return 0
        await replicas[n % 5].settle(reservation, used(50))
        return 50

    spent = sum(await asyncio.gather(*(call(n) for n in range(50))))
    await watch.close()
    assert await accounts(bare) == {(0, spent)}
    assert 0 < spent <= 1000
    assert max(totals) <= 1000


async def test_who_is_over_their_share_takes_nothing_of_everybodys(bare: Stack) -> None:
    budget = await budget_on(bare, share_per_user=0.5)
    await budget.reserve(ANN, most(400))
    with pytest.raises(BudgetExceeded, match="for one person"):
        await budget.reserve(ANN, most(200))
    assert await accounts(bare) == {(400, 0)}
    bob = msgspec.structs.replace(ANN, user="bob")
    await budget.reserve(bob, most(500))


async def test_a_crash_between_over_counts_until_midnight(bare: Stack) -> None:
    """C-9: another process finds it taken, until the day ends."""
    clock = HandClock()
    await (await budget_on(bare, clock)).reserve(ANN, most(900))
    survivor = await budget_on(bare, clock)
    with pytest.raises(BudgetExceeded):
        await survivor.reserve(ANN, most(200))
    clock.at = datetime(2026, 11, 21, 0, 0, tzinfo=UTC)
    await survivor.reserve(ANN, most(200))


async def test_a_raised_cap_holds_at_once(bare: Stack) -> None:
    await (await budget_on(bare)).reserve(ANN, most(900))
    raised = await budget_on(bare, daily_tokens=1200)
    await raised.reserve(ANN, most(300))
    assert await accounts(bare) == {(1200, 0)}


async def test_it_settles_on_the_day_of_the_reservation(bare: Stack) -> None:
    clock = HandClock(datetime(2026, 11, 20, 23, 59, 59, tzinfo=UTC))
    budget = await budget_on(bare, clock)
    reservation = await budget.reserve(ANN, most(100))
    clock.at += timedelta(seconds=2)
    await budget.settle(reservation, used(80))
    assert await accounts(bare) == {(0, 80)}
    bus = await bare.bus("admin")
    (entry,) = await bus.read("KV_BUDGETS", ["$KV.BUDGETS.*.costs.*"])
    assert entry.subject.startswith("$KV.BUDGETS.2026-11-20.")
    assert [row.calls for row in msgspec.json.decode(entry.data, type=DayOfCosts).rows] == [1]
    await budget.reserve(ANN, most(10))
    assert await accounts(bare, "2026-11-21") == {(10, 0)}


async def test_more_used_than_reserved_is_counted(bare: Stack) -> None:
    budget = await budget_on(bare)
    await budget.settle(await budget.reserve(ANN, most(10)), used(2000))
    assert await accounts(bare) == {(0, 2000)}
    with pytest.raises(BudgetExceeded):
        await budget.reserve(ANN, most(1))


@pytest.mark.parametrize("tokens", [-5, 0, 10**12])
async def test_a_count_that_can_not_be_true_leaves_the_reservation(
    bare: Stack, tokens: int
) -> None:
    budget = await budget_on(bare)
    reservation = await budget.reserve(ANN, most(100))
    with pytest.raises(Unavailable, match="can't be true"):
        await budget.settle(reservation, used(tokens))
    assert await accounts(bare) == {(100, 0)}


async def test_what_was_erased_meanwhile_is_not_made_again(bare: Stack) -> None:
    """SPEC P-5: a call that ends after its person is gone leaves sums of all, and no name."""
    budget = await budget_on(bare)
    reservation = await budget.reserve(ANN, most(100))
    bus = await bare.bus("admin")
    for subject in filters_of("ann")["KV_BUDGETS"]:
        await bus.api("STREAM.PURGE.KV_BUDGETS", {"filter": subject})
    await budget.settle(reservation, used(80))
    assert await accounts(bare) == {(0, 80)}
    left = {one.subject.split(".")[3] for one in await bus.read("KV_BUDGETS", ["$KV.BUDGETS.>"])}
    assert left == {"instance", "agent"}


async def test_a_refused_call_costs_nothing(bare: Stack) -> None:
    budget = await budget_on(bare)
    await budget.settle(await budget.reserve(ANN, most(100)), None)
    assert await accounts(bare) == {(0, 0)}


async def test_an_unknown_outcome_over_counts(bare: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """C-9: the batch is stored, its answer is lost: raised, never taken back, and seen again."""
    budget = await budget_on(bare)
    reservation = await budget.reserve(ANN, most(100))
    request = budget._bus._request

    async def lose_the_answer(subject: str, *args: Any) -> Any:
        answer = await request(subject, *args)
        if subject.startswith("$KV."):
            raise OutcomeUnknown("the answer was lost")
        return answer

    monkeypatch.setattr(budget._bus, "_request", lose_the_answer)
    with pytest.raises(Unavailable):
        await budget.reserve(ANN, most(300))
    with pytest.raises(Unavailable):
        await budget.settle(reservation, used(100))
    monkeypatch.undo()
    assert await accounts(bare) == {(300, 100)}
    await budget.reserve(ANN, most(600))
    assert await accounts(bare) == {(900, 100)}


async def test_an_entry_that_can_not_be_read_fails_closed(bare: Stack) -> None:
    bus = await bare.bus("cortex")
    await KeyValue(bus, "BUDGETS").put("2026-11-20.instance.all", b"not json")
    with pytest.raises(Unavailable, match="can't be read"):
        await (await budget_on(bare)).reserve(ANN, most(1))


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
    found = estimate(request)
    assert found.output_tokens == 1000
    assert found.input_tokens >= len(text.encode()) + len(msgspec.json.encode(specs())) // 3
