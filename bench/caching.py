"""What a conversation's first request takes, and how much of the later ones a provider can read
from its cache; and what it would cost if the history kept what changes with every call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from bench import situations, system
from bench.conversations import build
from bench.memory_api import CONNECTIONS, bus_of, clients
from bench.numbers import report
from bench.retrieval import post_turns
from bench.situations import Body
from services.cortex.thought.recollector import MEMORIES_MAX
from tests.support.long_talk import LongTalk, long_talk, long_talk_with_openai
from tests.support.prompt_cache import cached_share
from vigil.contracts import Usage
from vigil.memory.client import MemoryClient
from vigil.memory.operations.recall import Recall, Recalled
from vigil.settings.memory import MemorySection
from vigil.subjects import Scope

TURNS: Final = 20
SEED: Final = 11
PACES_S: Final = {"quick": 60.0, "slow": 600.0}
"""From one message to the next: within the time that a provider keeps anything, and beyond."""


async def measure(home: Path) -> None:
    """Report shares of input that is cached, and the price of a history that only grows."""
    for provider, talk in (
        ("anthropic", long_talk(_made(home, "anthropic"), lambda: 0.0)),
        ("openai", long_talk_with_openai(_made(home, "openai"), "gpt-6-luna")),
    ):
        async with talk as long:
            turns, begins = await _held(long, [""] * TURNS)
            bodies = [long.api.wire.read(request.body) for request in long.api.requests]
            first = len(msgspec.json.encode(long.api.requests[0].body))
        shares = [round(100 * cached_share(calls), 1) for calls in turns]
        whole = round(100 * cached_share([used for calls in turns for used in calls]), 1)
        report("first_request_bytes", first, "bytes", aim="<= 14,000", provider=provider)
        report("cached_share_20_pct", shares[-1], "% of the input tokens", aim=">= 85",
               provider=provider, all_turns=whole, turn_2=shares[1])  # fmt: skip
    _report_prices("scripted", bodies, begins)
    await _measure_recalled(home)


async def _measure_recalled(home: Path) -> None:
    """Report the same prices where a real memory decides what is recalled for each message, and
    where it has nothing."""
    texts, recalled = await _recalled(_made(home, "memory"))

    def remember(question: Recall) -> Recalled:
        return recalled[int(question.query.split()[1].rstrip(":")) - 1]

    answers = {"recalled": remember, "none": lambda _: Recalled(hits=())}
    for name, answer in answers.items():
        async with long_talk(_made(home, name), lambda: 0.0, answer) as long:
            _, begins = await _held(long, texts)
            bodies = [request.body for request in long.api.requests]
        _report_prices(name, bodies, begins)


async def _held(long: LongTalk, texts: Sequence[str]) -> tuple[list[list[Usage]], list[int]]:
    """Hold a conversation; return what its turns used, and which requests begin one."""
    turns, begins = [], []
    for number, text in enumerate(texts, 1):
        begins.append(len(long.api.requests))
        turns.append(await long.turn(number, text))
    return turns, begins


async def _recalled(home: Path) -> tuple[list[str], list[Recalled]]:
    """Return what somebody says in the last of their conversations, and what memory, which has all
    that was said before, recalls for each of these messages."""
    talk = build(SEED, "held_out")
    speaker = talk.turns[-1].text.partition(":")[0]
    own = [turn for turn in talk.turns if turn.text.startswith(speaker)][-TURNS:]
    async with system.running(home) as running:
        async with clients(running, CONNECTIONS) as some:
            await post_turns(some, talk, own[0].number)
            await some[0].until_found()
        async with bus_of(running, "cortex") as bus:
            memory = MemoryClient(bus)
            found = []
            for turn in own:
                query = Recall(
                    query=turn.text, limit=MEMORIES_MAX, counts=False,
                    tokens=MemorySection().recall_tokens,
                )  # fmt: skip
                found.append(await memory.ask(Scope(talk.name, "me"), query))
    return [turn.text for turn in own], found


def _report_prices(memory: str, bodies: Sequence[Body], begins: Sequence[int]) -> None:
    ways = {
        "dropped": bodies,
        "kept": situations.kept(bodies, situations.whole),
        "news_kept": situations.kept(bodies, situations.new_lines),
        "left_out": situations.without(bodies),
    }
    before, after = bodies[begins[-2]], bodies[begins[-1]]
    report("turn_20_same_pct", 100 * situations.same(before, after), "% of the bytes",
           memory=memory)  # fmt: skip
    for pace, turn_s in PACES_S.items():
        prices = {name: situations.price(way, begins, turn_s) for name, way in ways.items()}
        base, _ = prices["dropped"]
        for name, (cost, share) in prices.items():
            ratios = {
                "over_dropped": round(cost / base, 2),
                "last_read_pct": round(100 * share, 1),
            }
            where = {"memory": memory, "pace": pace}
            report(f"situation_{name}_cost", cost, "input tokens", **where, **ratios)


def _made(home: Path, name: str) -> Path:
    folder = home / name
    folder.mkdir()
    return folder
