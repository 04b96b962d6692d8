"""A cortex is killed between what it set aside for a call and what the call took (SPEC C-9)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from tests.chaos.arena import ENVIRONMENT
from tests.chaos.processes import Processes
from tests.support.messages_api import MessagesApi, Reply, messages_api, says
from tests.support.stack import Stack, running_broker, settings_of
from tests.support.talk import Talk
from vigil.contracts.costs import Account, DayOfCosts

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("halved_times")]

PATIENCE_S = 60.0
USED = {"input_tokens": 900, "output_tokens": 77}


async def test_a_call_that_nobody_settled_stays_counted(tmp_path: Path) -> None:
    """Issue 14: killed twice in the middle of a call, and never is less counted than was asked for;
    the call that was answered is in the ledger once."""
    async with messages_api() as api, running_broker(tmp_path) as broker:
        api.replies.extend([Reply(fault="hang"), Reply(fault="stall"), says("Here.", usage=USED)])
        stack = Stack(broker, settings_of(tmp_path))
        environment = {
            "NATS_URL": broker.url,
            "VIGIL_MODEL": "claude-test",
            "ANTHROPIC_BASE_URL": api.url,
            "ANTHROPIC_API_KEY": "none",
        }
        processes = Processes(tmp_path, ENVIRONMENT | environment)
        try:
            talk = await Talk.open(stack, "ann:vigil:t")
            processes.start("cortex")
            await talk.say("hello")
            held: list[int] = []
            for calls in (1, 2):
                await asked(api, calls)
                account = await instance(stack)
                held.append(account.reserved)
                assert account.used == 0
                assert processes.kill("cortex")
            await talk.until(lambda: any(turn.outcome == "answered" for turn in talk.turns))
            account = await instance(stack)
            assert 0 < held[0] < held[1]
            assert account == Account(reserved=held[1], used=977)
            bus = await stack.bus("admin")
            (entry,) = await bus.read("KV_BUDGETS", ["$KV.BUDGETS.*.costs.*"])
            assert [row.calls for row in msgspec.json.decode(entry.data, type=DayOfCosts).rows] == [
                1
            ]
        finally:
            await processes.stop()
            await stack.close()


async def asked(api: MessagesApi, times: int) -> None:
    """Wait until the server was asked so often."""
    async with asyncio.timeout(PATIENCE_S):
        while len(api.requests) < times:
            await asyncio.sleep(0.05)


async def instance(stack: Stack) -> Account:
    """Return what is counted for everybody, after a look that each account of the chain agrees."""
    bus = await stack.bus("admin")
    found = await bus.read("KV_BUDGETS", ["$KV.BUDGETS.*.*.>"])
    (account,) = {
        msgspec.json.decode(one.data, type=Account) for one in found if ".costs." not in one.subject
    }
    return account
