"""What a budget stops goes on by itself, in order and once (LOOPS L-21), through real services."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from tests.support.messages_api import MessagesApi, Reply, messages_api, says
from tests.support.messages_replies import said
from tests.support.stack import Stack, running_stack, settings_of
from tests.support.talk import PATIENCE_S, Talk
from tests.support.world import StoppedClock
from vigil.bus.kv import KeyValue
from vigil.contracts import Control, ControlPayload, Start, encode
from vigil.settings.models.raises import Raise, of_person

SERVICES = ("cortex", "scheduler", "executor", "delivery")
ANSWER = 30_000
ROOM_FOR_3 = 110_000
"""With so long an answer reserved each time, and some thousands for what is sent."""
ROOM_FOR_1 = 40_000
USED = {"input_tokens": 5_000, "output_tokens": ANSWER}


def sections(daily_tokens: int) -> dict[str, Any]:
    return {
        "model": {"main": "claude-test", "max_tokens": ANSWER},
        "budget": {
            "daily_tokens": daily_tokens,
            "share_per_user": 1.0,
            "share_unattended": 1.0,
        },
        "sessions": {"busy_per_user_max": 20},
    }


def answers(body: dict[str, Any]) -> Reply:
    """Say what was asked, and take as much as was set aside."""
    return says(f"Done: {said(body)[-1]['content'][-1]['text']}", usage=USED)


async def begin_worker(talk: Talk, number: int, clock: StoppedClock) -> None:
    """Start a worker as the executor does, for nobody who waits."""
    start = Start(prompt=f"job {number}")
    event = Control(
        id=f"start-{number}", session_key=str(talk.key), created_at=clock.now(),
        payload=ControlPayload(op="start", start=start),
    )  # fmt: skip
    await talk.store(talk.key.in_event("control"), encode(event), event.id)


async def raise_cap(stack: Stack, daily_tokens: int) -> None:
    """Start all services anew with another configuration, as `vigil up` does."""
    for name in SERVICES:
        await stack.stop(name)
    settings = settings_of(
        stack.settings.home, stack.settings.anthropic_base_url, **sections(daily_tokens)
    )
    stack.settings = msgspec.structs.replace(stack.settings, config=settings.config)
    await stack.start(*SERVICES)


async def until_answered(workers: list[Talk], count: int, rounds: int) -> None:
    """Wait until so many workers answered, and each other one was stopped so many times."""
    async with asyncio.timeout(PATIENCE_S):
        while sum(map(is_over, workers)) != count:
            await asyncio.sleep(0.02)
    for worker in workers:
        waits = worker.notes.count
        await worker.until(lambda w=worker, n=waits: is_over(w) or n("budget_waits") == rounds)  # type: ignore[misc]


def is_over(worker: Talk) -> bool:
    return bool(worker.turns) and worker.turns[-1].outcome == "answered"


def asked(api: MessagesApi) -> list[str]:
    """Return what the model was asked, in order."""
    texts = (said(request.body)[-1]["content"][-1]["text"] for request in api.requests)
    return [text.removeprefix("[Task]\n\n") for text in texts]


async def test_ten_workers_with_room_for_three(tmp_path: Path) -> None:
    """Issue 14: three calls are made; three more as the day turns; the rest as the cap is raised.
    The person is told at home of each level, once for each day, and is answered in order."""
    clock = StoppedClock()
    async with (
        messages_api(answers) as api,
        running_stack(
            tmp_path, SERVICES, clock, anthropic_base_url=api.url, **sections(ROOM_FOR_3)
        ) as stack,
    ):
        workers = [await Talk.open(stack, f"ann:vigil:_worker-{n}") for n in range(10)]
        home = await Talk.open(stack, "ann:vigil:main")
        for number, worker in enumerate(workers):
            await begin_worker(worker, number, clock)
        await until_answered(workers, 3, rounds=1)
        await home.until(lambda: len(home.said) == 2)
        assert len(api.requests) == 3

        clock.move(86_400)
        await until_answered(workers, 6, rounds=2)
        await home.until(lambda: len(home.said) == 4)
        assert len(api.requests) == 6

        chat = await Talk.open(stack, "ann:vigil:chat")
        await chat.say("one")
        await chat.until(lambda: len(chat.said) == 1)
        last = await chat.say("two")
        await raise_cap(stack, 20 * ROOM_FOR_3)
        await until_answered(workers, 10, rounds=0)
        await chat.ended(last)
        await chat.until(lambda: len(chat.said) == 4)
        assert chat.texts[0].startswith("I can't answer yet: the daily limit of 110000 tokens")
        assert chat.texts[1].endswith("I'll take it up after the other.")
        assert chat.texts[2:] == ["Done: one", "Done: two"]
        assert sorted(asked(api)) == sorted(["one", "two", *(f"job {n}" for n in range(10))])
        assert home.notes.count("budget_warned") == 4
        assert sum("at 100 % model calls stop" in text for text in home.texts) == 2
        assert sum("the daily limit of 110000 tokens is reached" in one for one in home.texts) == 2


async def test_a_word_raises_ones_own_limit_at_once(tmp_path: Path) -> None:
    """C-9: what was stopped goes on in the same minute, without a restart, once for each day and no
    further than the owner allows."""
    clock = StoppedClock()
    caps = {"daily_tokens": 2 * ROOM_FOR_1, "share_per_user": 0.5, "raise_max": 2.0}
    settings = sections(0) | {"budget": caps}
    async with (
        messages_api(answers) as api,
        running_stack(tmp_path, SERVICES, clock, anthropic_base_url=api.url, **settings) as stack,
    ):
        chat = await Talk.open(stack, "ann:vigil:chat")
        await chat.ended(await chat.say("one"))
        two = await chat.say("two")
        await chat.until(lambda: len(chat.said) == 2)
        assert chat.texts[1].startswith("I can't answer yet: the daily limit of 40000 tokens for")
        assert 'say "more" to have 80000 tokens today' in chat.texts[1]

        await chat.say("more")
        await chat.ended(two)
        await chat.until(lambda: len(chat.said) == 4)
        assert chat.texts[2:] == ["Raised for today: you may use 80000 tokens.", "Done: two"]
        entry = await KeyValue(await stack.bus("gateway"), "CONFIG").get(
            f"raised.{of_person('ann')}"
        )
        assert entry is not None
        kept = msgspec.json.decode(entry.value, type=Raise)
        assert kept == Raise(day=str(clock.now().date()), times=1, at=clock.now(), by="ann")

        await chat.say("three")
        await chat.until(lambda: len(chat.said) == 5)
        assert "the daily limit of 80000 tokens" in chat.texts[4]
        assert "more" not in chat.texts[4]
        assert asked(api) == ["one", "two"]
