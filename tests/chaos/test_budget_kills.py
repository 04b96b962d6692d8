"""The cortex is killed around paid calls: what its provider counts is counted here, too (C-9)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
import pytest

from tests.chaos.arena import ENVIRONMENT
from tests.chaos.processes import Processes, Step
from tests.support.messages_api import MessagesApi, messages_api, says
from tests.support.stack import Stack, running_broker, settings_of
from tests.support.talk import Talk
from vigil.bus.bus import Bus
from vigil.contracts.costs import COSTS, Account, DayOfCosts

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("halved_times")]

POINTS: Final = ("cortex.budget.reserved", "cortex.budget.answered")
USED: Final = {"input_tokens": 5000, "output_tokens": 500}
PAID_TOKENS: Final = sum(USED.values())
PAID_MICRO_USD: Final = 5000 * 3 + 500 * 15
MODEL: Final = """
[models.claude-test]
prices = [{since = 2026-01-01, input = 3, output = 15}]
"""


async def accounts_of(bus: Bus) -> Account:
    """Return what all accounts of the one chain there is hold."""
    found = [
        msgspec.json.decode(one.data, type=Account)
        for one in await bus.read("KV_BUDGETS", ["$KV.BUDGETS.>"])
        if f".{COSTS}." not in one.subject
    ]
    assert len(found) == 4, "the session's, the person's, the agent's, the instance's"
    (account,) = set(found)
    return account


def check(account: Account, api: MessagesApi) -> None:
    paid = len(api.requests)
    assert account.reserved + account.used >= paid * PAID_TOKENS
    assert account.reserved_micro_usd + account.used_micro_usd >= paid * PAID_MICRO_USD


async def test_no_kill_loses_what_was_paid(tmp_path: Path, is_long: bool) -> None:
    """L-21: at each end every account of the chain holds at least what the provider counted."""
    rounds = 10 if is_long else 1
    (tmp_path / "vigil.toml").write_text(MODEL)
    async with (
        messages_api(lambda _: says("Hello.", usage=USED)) as api,
        running_broker(tmp_path) as broker,
    ):
        stack = Stack(broker, settings_of(tmp_path))
        bus = await stack.bus("admin")
        named = {"VIGIL_MODEL": "claude-test", "ANTHROPIC_BASE_URL": api.url}
        processes = Processes(tmp_path, ENVIRONMENT | named | {"NATS_URL": broker.url})

        async def checked() -> None:
            if processes.exits:
                check(await accounts_of(bus), api)

        # Who answers a message after two kills is killed at the next one's first step.
        steps = [
            Step(point=point, passage=2 if number and not n else 1, prepare=checked)
            for number in range(rounds)
            for n, point in enumerate(POINTS)
        ]
        try:
            processes.start("cortex", steps)
            talk = await Talk.open(stack, "ann:vigil:t1")
            for _ in range(rounds):
                await talk.ended(await talk.say("hello"))
            await checked()
        finally:
            await processes.stop()
        assert [one.crash_at for one in processes.exits if one.is_crash] == [
            step.crash_at for step in steps
        ]
        assert len(api.requests) == 2 * rounds
        account = await accounts_of(bus)
        assert account.used == rounds * PAID_TOKENS
        assert account.reserved >= rounds * PAID_TOKENS
        (entry,) = await bus.read("KV_BUDGETS", [f"$KV.BUDGETS.*.{COSTS}.*"])
        (row,) = msgspec.json.decode(entry.data, type=DayOfCosts).rows
        assert (row.calls, row.micro_usd) == (rounds, rounds * PAID_MICRO_USD)
        await stack.close()
