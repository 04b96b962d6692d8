"""How well memories are found, through the HTTP API of a real `vigil up`.

Conversations of each family (`bench.conversations`) are posted turn by turn, and each of their
questions is asked three ways; evidence recall@k is the share of the turns that answer a question
which are among the first k. How fast that is: `bench.memory_speed`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench import identifiers, languages, links, system
from bench.conversations import FIRST_DAY, Conversation, Family, Question, Turn, build
from bench.memory_api import CONNECTIONS, Client, bus_of, clients
from bench.numbers import report
from bench.system import System
from services.cortex.thought.recollector import MEMORIES_MAX
from services.memory.recall.selection import BYTES_PER_TOKEN, LINE_BYTES
from vigil.memory.client import MemoryClient
from vigil.memory.operations.recall import Recall, Recalled
from vigil.settings.memory import MemorySection
from vigil.subjects import Scope

MODES: Final = ("text", "vector", "hybrid")
KS: Final = (5, 10, 25, 50)
SEEDS: Final = (11, 12, 13)
"""Of each family."""
QUESTIONS: Final = 400


async def measure(home: Path) -> None:
    """Report the evidence that is found, of both families, and what of other languages is."""
    async with system.running(home) as running:
        _report(await measure_quality(running, "tuning"), "_tuning")
        _report(await measure_quality(running, "held_out"))
        report("languages_first_pct", await measure_languages(running), "%")


def _report(found: Quality, family: str = "") -> None:
    more = {"questions": found.questions, "turns": found.turns}
    for k in KS:
        for mode, name in (("text", "fts"), ("vector", "vector"), ("hybrid", "hybrid")):
            value = found.recall[mode][k]
            report(f"recall{k}_{name}{family}", value, "% of the evidence", **more)
    report(f"multi_hop10{family}", found.multi_hop10, "% of the evidence", **more)
    report(f"linked5{family}", found.linked5, "% of the evidence")
    report(f"identifiers_first_pct{family}", found.identifiers_first_pct, "%", aim="100")
    prompted = found.prompted
    sizes = {"tokens": round(prompted.tokens), "memories": round(prompted.memories, 1)}
    report(f"evidence_in_prompt_pct{family}", prompted.evidence_pct, "%", **sizes)


class Prompted(NamedTuple):
    """What the prompt of an answer holds of its question's evidence, and what that takes."""

    evidence_pct: float
    tokens: float
    memories: float


class Quality(NamedTuple):
    """Evidence recall in %, by mode and k."""

    recall: dict[str, dict[int, float]]
    multi_hop10: float
    """Of the questions that several turns answer, hybrid at 10."""
    linked5: float
    """Of those that one turn leads from to another by a name (`bench.links`), hybrid at 5."""
    identifiers_first_pct: float
    """Questions that name what stands in one memory alone, which have that first."""
    prompted: Prompted
    questions: int
    turns: int


async def measure_quality(system: System, family: Family, seeds: Sequence[int] = SEEDS) -> Quality:
    """Post conversations and ask their questions. Each has an agent and a memory of its own."""
    talks = [build(seed, family) for seed in seeds]
    async with clients(system, CONNECTIONS) as some:
        numbers = [await post_turns(some, talk) for talk in talks]
        await some[0].until_found()
        asked = [
            (talk.name, ids, question)
            for talk, ids in zip(talks, numbers, strict=True)
            for question in talk.questions
        ]
        chosen = random.Random(0).sample(asked, min(QUESTIONS, len(asked)))
        found = await _ask_all(some[:4], chosen)
    recall = {
        mode: {k: 100 * sum(hits[mode][k] for _, hits in found) / len(found) for k in KS}
        for mode in MODES
    }
    multi = [hits["hybrid"][10] for asked_question, hits in found if asked_question.kind == "multi"]
    turns = sum(len(talk.turns) for talk in talks)
    prompted = await _prompted(system, chosen)
    async with clients(system, 1) as (client,):
        # Last: what it saves is no turn of the conversation.
        first = await _identifiers_first(client, talks[0].name, seeds[0])
        linked = await _linked(client, talks[1].name, seeds[1], family)
    return Quality(
        recall=recall,
        multi_hop10=100 * sum(multi) / len(multi),
        linked5=linked,
        identifiers_first_pct=first,
        prompted=prompted,
        questions=len(found),
        turns=turns,
    )


async def _identifiers_first(client: Client, agent: str, seed: int) -> float:
    """Save turns with names of their own among a conversation; return how many come first, in %."""
    named = identifiers.build(seed)
    ids = [await client.save(agent, one.turn) for one in named]
    await client.until_found()
    found = [await client.recall(agent, one.question, "hybrid", 1) for one in named]
    return 100 * sum(one == [id_] for one, id_ in zip(found, ids, strict=True)) / len(named)


async def _prompted(
    system: System, asked: Sequence[tuple[str, dict[str, int], Question]]
) -> Prompted:
    """Ask as a cortex does before an answer."""
    tokens = MemorySection().recall_tokens
    found: list[tuple[float, float, float]] = []
    async with bus_of(system, "cortex") as bus:
        memory = MemoryClient(bus)
        for agent, numbers, question in asked:
            query = Recall(query=question.text, limit=MEMORIES_MAX, tokens=tokens, counts=False)
            reply: Recalled = await memory.ask(Scope(agent, "me"), query)
            hits = {numbers[hit.memory.id] for hit in reply.hits}
            share = len(hits & set(question.evidence)) / len(question.evidence)
            size = sum(len(hit.text.encode()) + LINE_BYTES for hit in reply.hits)
            found.append((100 * share, size / BYTES_PER_TOKEN, len(hits)))
    return Prompted(*(sum(column) / len(column) for column in zip(*found, strict=True)))


async def post_turns(
    some: Sequence[Client], talk: Conversation, count: int | None = None
) -> dict[str, int]:
    """Post the turns, or the first of them, several at once; return which memory is which turn."""
    waiting = iter(talk.turns[:count])
    numbers: dict[str, int] = {}

    async def post(client: Client) -> None:
        for turn in waiting:
            numbers[await client.save(talk.name, turn)] = turn.number

    await asyncio.gather(*map(post, some))
    return numbers


async def _ask_all(
    some: Sequence[Client], asked: Sequence[tuple[str, dict[str, int], Question]]
) -> list[tuple[Question, dict[str, dict[int, float]]]]:
    waiting = iter(asked)
    found: list[tuple[Question, dict[str, dict[int, float]]]] = []

    async def ask(client: Client) -> None:
        for agent, numbers, question in waiting:
            hits: dict[str, dict[int, float]] = {}
            for mode in MODES:
                ids = await client.recall(agent, question.text, mode, max(KS))
                hits[mode] = recall_at([numbers[one] for one in ids], question.evidence)
            found.append((question, hits))

    await asyncio.gather(*map(ask, some))
    return found


def recall_at(found: Sequence[int], evidence: Sequence[int]) -> dict[int, float]:
    """Return the share of the evidence among the first k.

    >>> recall_at([7, 3, 9], [3, 4])
    {5: 0.5, 10: 0.5, 25: 0.5, 50: 0.5}
    """
    return {k: len(set(found[:k]) & set(evidence)) / len(evidence) for k in KS}


async def _linked(client: Client, agent: str, seed: int, family: Family) -> float:
    """Save turns that lead to one another among a conversation; return the evidence at 5, in %."""
    linked = links.build(seed, family)
    ids = [await client.save(agent, turn) for turn in linked.turns]
    await client.until_found()
    shares = []
    for question in linked.questions:
        found = await client.recall(agent, question.text, "hybrid", 5)
        wanted = {ids[number] for number in question.evidence}
        shares.append(len(wanted.intersection(found)) / len(wanted))
    return 100 * sum(shares) / len(shares)


async def measure_languages(system: System) -> float:
    """Save the memories of each language for an agent, and ask in other forms of their words;
    return how many come first, in %."""
    found: list[bool] = []
    async with clients(system, 1) as (client,):
        for language, pairs in languages.PAIRS.items():
            told = [*(text for text, _ in pairs), *languages.others(language)]
            ids = [await client.save(language, Turn(0, "", FIRST_DAY, text)) for text in told]
            await client.until_found()
            for id_, (_, question) in zip(ids, pairs, strict=False):
                found.append(await client.recall(language, question, "hybrid", 1) == [id_])
    return 100 * sum(found) / len(found)
