"""A loop with many memory tool calls, whose services are killed meanwhile (SPEC S-12, X-5, M-2)."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.chaos.killable import killable
from tests.chaos.processes import Step
from tests.support.talk import Talk
from vigil.bus.bus import Bus
from vigil.contracts import CallTool, MemorySaved, decode_memory
from vigil.subjects import MEMORIES_ALL

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("halved_times")]

CALLS: Final = 20
KILLS: Final = 40
PATIENCE_S: Final = 120.0
SERVICES: Final = ("cortex", "memory", "scheduler", "delivery")
TIMES: Final = {"VIGIL_MODEL__TOOL_TIMEOUT_S": "100"}
"""A turn comes back 8 s after its holder was killed: several times in 30 s would be bad luck."""


def things(number: int) -> list[str]:
    return [f"thing {number}-{i} is {i * i}" for i in range(CALLS)]


def order(number: int) -> str:
    """One message that makes the rehearsal model save twenty things in one answer."""
    return ". ".join(f"Remember that {thing}" for thing in things(number)) + "."


async def saved(bus: Bus) -> list[MemorySaved]:
    records = [decode_memory(m.data) for m in await bus.read("MEMORIES", [MEMORIES_ALL])]
    return [record for record in records if isinstance(record, MemorySaved)]


async def assert_each_once(talk: Talk, bus: Bus, numbers: int) -> None:
    """Every loop ended with an answer, and each thing was saved once."""
    assert len(talk.said) == numbers
    assert all(text.startswith("I'll remember that thing") for text in talk.texts), talk.texts
    called = [e for turn in talk.turns for e in turn.effects if isinstance(e, CallTool)]
    assert len(called) == numbers * CALLS
    contents = Counter(record.memory.content for record in await saved(bus))
    assert contents == Counter(thing for n in range(numbers) for thing in things(n))
    assert "no_result" not in talk.notes
    ended = Counter(event for turn in talk.turns for event in turn.ended)
    assert max(ended.values()) == 1


@pytest.mark.long
async def test_twenty_calls_survive_random_kills(tmp_path: Path, seed: int) -> None:
    """S-12: the loop resumes at its last step; each save is in memory, once."""
    random = Random(seed)
    async with killable(tmp_path, dict.fromkeys(SERVICES, ()), TIMES) as (stack, processes):
        talk = await Talk.open(stack, "ann:vigil:t")
        number = 0
        await talk.say("hello")
        await talk.until(lambda: len(talk.said) == 1, PATIENCE_S)  # everything is up
        talk.said.clear()
        for kill in range(KILLS):
            if kill % 2 == 0:
                before = len(talk.turns)
                seq = await talk.say(order(number))
                number += 1
                await talk.until(lambda b=before: len(talk.turns) > b, PATIENCE_S)  # type: ignore[misc]
            await asyncio.sleep(random.uniform(0, 0.2))  # where the kill falls is up to chance
            processes.kill(random.choice(["cortex", "memory"]))
            if kill % 2:
                await talk.until(lambda s=seq: _is_answered(talk, s), PATIENCE_S)  # type: ignore[misc]
        await talk.until(lambda: len(talk.said) >= number, PATIENCE_S)
        await assert_each_once(talk, talk.bus, number)
        print(f"\n{KILLS} kills, {number * CALLS} calls; ends: {len(processes.exits)}")


def _is_answered(talk: Talk, seq: int) -> bool:
    return any(t.state.position >= seq and t.state.loop is None for t in talk.turns)


async def test_twenty_calls_survive_a_kill_at_each_step(tmp_path: Path) -> None:
    """S-12: cortex and memory end at each step of a call's way, and others go on."""
    cortex = ["cortex.commit.before", "cortex.commit.after", "cortex.event.read"]
    memory = [
        "memory.turn.received", "memory.call.before_claim", "memory.call.claimed",
        "memory.call.ran", "memory.call.answered", "memory.turn.before_ack", "memory.save.before",
    ]  # fmt: skip
    plans = {
        "cortex": [Step(point=point, passage=7) for point in cortex],
        "memory": [Step(point=point, passage=1) for point in memory],
    }
    async with killable(tmp_path, dict.fromkeys(SERVICES, ()) | plans, TIMES) as (stack, processes):
        talk = await Talk.open(stack, "ann:vigil:t")
        number, over = 0, asyncio.create_task(processes.plans_over(PATIENCE_S * 2))
        while not over.done():
            seq = await talk.say(order(number))
            number += 1
            await talk.until(lambda s=seq: _is_answered(talk, s), PATIENCE_S)  # type: ignore[misc]
        await over
        await talk.until(lambda: len(talk.said) >= number, PATIENCE_S)
        await assert_each_once(talk, talk.bus, number)
        ends = [e.crash_at.partition(":")[0] for e in processes.exits if e.is_crash]
        assert sorted(ends) == sorted([*cortex, *memory])
