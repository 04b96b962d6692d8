"""How well and how fast memories are found, through the HTTP API of a real `vigil up`.

Quality: conversations of each family (`bench.conversations`) are posted turn by turn, and each of
their questions is asked three ways; evidence recall@k is the share of the turns that answer a
question which are among the first k. Speed: 1,000, 10,000 and 100,000 memories of one owner, each
question asked all three ways in turn, with and without a filter for a source that 10 of them have.

The many memories are written to the log itself, as the memory service writes them: by HTTP, 100,000
would take minutes that measure nothing.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

from bench import identifiers, languages, links
from bench.conversations import FIRST_DAY, Conversation, Family, Question, Turn, build
from bench.load import Http, connect_http
from bench.numbers import percentile
from bench.system import System
from services.cortex.thought.recollector import MEMORIES_MAX
from services.memory.recall.selection import BYTES_PER_TOKEN, LINE_BYTES
from vigil.bus.bus import Bus
from vigil.contracts import Memory, MemorySaved, encode
from vigil.memory.client import MemoryClient
from vigil.memory.operations.recall import Recall, Recalled
from vigil.settings import credentials
from vigil.settings.memory import MemorySection
from vigil.subjects import Scope, token_of

MODES: Final = ("text", "vector", "hybrid")
KS: Final = (5, 10, 25, 50)
SEEDS: Final = (11, 12, 13)
"""Of each family."""
CONNECTIONS: Final = 32
QUESTIONS: Final = 400
RARE: Final = "rare"
RARE_COUNT: Final = 10
PATIENCE_S: Final = 240.0


class Client:
    """One connection that asks as a program of the owner would."""

    def __init__(self, system: System, http: Http) -> None:
        self._http = http
        self._headers = (
            f" HTTP/1.1\r\nhost: {urlsplit(system.url).netloc}\r\n"
            f"authorization: Bearer {system.token}\r\ncontent-type: application/json\r\n"
        )

    async def call(self, method: str, path: str, body: bytes = b"") -> Any:
        head = f"{method} {path}{self._headers}".encode()
        status, answer = await self._http.post(head, body)
        if status not in (200, 201, 202):
            raise RuntimeError(f"{method} {path}: {status}: {answer!r}")
        return json.loads(answer)

    async def save(self, agent: str, turn: Turn) -> str:
        """Post a turn; return the memory's id."""
        body = {
            "content": turn.text,
            "occurredAt": turn.at.isoformat(),
            "agentId": agent,
        }
        if turn.thread:
            body["threadId"] = turn.thread
        return str((await self.call("POST", "/api/memories", json.dumps(body).encode()))["id"])

    async def recall(
        self, agent: str, text: str, mode: str, limit: int, source: str = ""
    ) -> list[str]:
        """Return the ids of what is found."""
        path = f"/api/memories?agentId={agent}&mode={mode}&limit={limit}&source={source}"
        found = await self.call("GET", f"{path}&q={quote(text)}")
        return [memory["id"] for memory in found["memories"]]

    async def stats(self) -> dict[str, Any]:
        found: dict[str, Any] = await self.call("GET", "/api/memories/stats")
        return found

    async def until_found(self) -> None:
        """Wait until everything that is stored is in both indexes."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = await self.stats()
                if found["rebuild"] is None and found["vectors_position"] >= found["position"]:
                    return
                await asyncio.sleep(0.05)


@asynccontextmanager
async def clients(system: System, count: int) -> AsyncIterator[list[Client]]:
    connections = [await connect_http(system.url) for _ in range(count)]
    try:
        yield [Client(system, http) for http in connections]
    finally:
        for http in connections:
            http.close()


# ---------------------------------------------------------------- quality


class Prompted(NamedTuple):
    """What the prompt of an answer holds of its question's evidence, and what that takes."""

    evidence_pct: float
    tokens: float
    memories: float


class Quality(NamedTuple):
    """Evidence recall in %, by mode and k; and how fast the turns were saved."""

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
    saves_per_s: float


async def measure_quality(system: System, family: Family, seeds: Sequence[int] = SEEDS) -> Quality:
    """Post conversations and ask their questions. Each has an agent and a memory of its own."""
    talks = [build(seed, family) for seed in seeds]
    async with clients(system, CONNECTIONS) as some:
        begun_at = time.perf_counter()
        numbers = [await _post(some, talk) for talk in talks]
        took_s = time.perf_counter() - begun_at
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
        saves_per_s=turns / took_s,
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
    async with _bus_of(system, "cortex") as bus:
        memory = MemoryClient(bus)
        for agent, numbers, question in asked:
            query = Recall(query=question.text, limit=MEMORIES_MAX, tokens=tokens, counts=False)
            reply: Recalled = await memory.ask(Scope(agent, "me"), query)
            hits = {numbers[hit.memory.id] for hit in reply.hits}
            share = len(hits & set(question.evidence)) / len(question.evidence)
            size = sum(len(hit.text.encode()) + LINE_BYTES for hit in reply.hits)
            found.append((100 * share, size / BYTES_PER_TOKEN, len(hits)))
    return Prompted(*(sum(column) / len(column) for column in zip(*found, strict=True)))


async def _post(some: Sequence[Client], talk: Conversation) -> dict[str, int]:
    """Post the turns, several at once, and return which memory is which turn."""
    waiting = iter(talk.turns)
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
            turns = [Turn(at, "", FIRST_DAY, told) for at, (told, _) in enumerate(pairs)]
            ids = [await client.save(language, turn) for turn in turns]
            await client.until_found()
            for id_, (_, question) in zip(ids, pairs, strict=True):
                found.append(await client.recall(language, question, "hybrid", 1) == [id_])
    return 100 * sum(found) / len(found)


# ---------------------------------------------------------------- speed


class Latency(NamedTuple):
    p50_ms: float
    p99_ms: float


async def measure_latency(
    system: System, size: int, questions: int
) -> tuple[float, dict[tuple[str, bool], Latency]]:
    """Fill a memory of so many; return the milliseconds of the first recall of all, and the latency
    by mode, and whether a source was asked for."""
    agent = f"many-{size}"
    turns, texts = _many(size)
    await _fill(system, agent, turns)
    async with clients(system, 1) as (client,):
        await client.until_found()
        begun_at = time.perf_counter()
        await client.recall(agent, texts[0], "hybrid", 10)
        first_ms = (time.perf_counter() - begun_at) * 1000
        for text in texts[1:5]:
            await client.recall(agent, text, "hybrid", 10)
        found: dict[tuple[str, bool], Latency] = {}
        for source in ("", RARE):
            for mode, times in (await _times(client, agent, texts[:questions], source)).items():
                found[mode, bool(source)] = Latency(percentile(times, 50), percentile(times, 99))
    return first_ms, found


async def _times(
    client: Client, agent: str, texts: Sequence[str], source: str
) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {mode: [] for mode in MODES}
    for text in texts:
        for mode in MODES:
            begun_at = time.perf_counter()
            ids = await client.recall(agent, text, mode, 10, source)
            times[mode].append((time.perf_counter() - begun_at) * 1000)
            if source and mode != "text" and len(ids) != RARE_COUNT:
                raise RuntimeError(f"a rare source gave {len(ids)} of its {RARE_COUNT}")
    return times


def _many(size: int) -> tuple[list[Turn], list[str]]:
    """Return so many turns of long conversations, and questions about them in random order."""
    turns: list[Turn] = []
    questions: list[str] = []
    for talk in _endless():
        turns += talk.turns
        questions += [question.text for question in talk.questions]
        if len(turns) >= size:
            break
    random.Random(size).shuffle(questions)
    return turns[:size], questions


def _endless() -> Iterator[Conversation]:
    for seed in itertools.count(100):
        yield build(seed, "tuning" if seed % 2 else "held_out", sessions=100)


async def _fill(system: System, agent: str, turns: Sequence[Turn]) -> None:
    """Write memories to the log; the service takes them in as it does those of any replica."""
    now = datetime.now(UTC)
    scope = Scope(agent, "me")
    every = len(turns) // RARE_COUNT
    waiting = iter(enumerate(turns))
    async with _bus_of(system, "memory") as bus:

        async def write() -> None:
            for number, turn in waiting:
                source = RARE if number % every == 0 else "api"
                record = _record(scope, number, turn, source, now)
                await bus.publish(scope.record("save"), encode(record), msg_id=record.id)

        await asyncio.gather(*(write() for _ in range(4 * CONNECTIONS)))
    async with clients(system, 1) as (client,):
        path = f"/api/memories/stats?agentId={agent}"
        async with asyncio.timeout(PATIENCE_S):
            while (await client.call("GET", path))["memories"] < len(turns):
                await asyncio.sleep(0.1)


@asynccontextmanager
async def _bus_of(system: System, role: str) -> AsyncIterator[Bus]:
    """Connect to the system's broker as one of its services."""
    seed = credentials.load(system.home / "nkeys", role)
    bus = await Bus.connect(system.nats_url, role=role, seed=seed)
    try:
        yield bus
    finally:
        await bus.close()


def _record(scope: Scope, number: int, turn: Turn, source: str, now: datetime) -> MemorySaved:
    memory_id = token_of("bench", scope.agent, str(number))
    return MemorySaved(
        id=f"save-{memory_id}",
        agent=scope.agent,
        owner=scope.owner,
        at=now,
        by="user:me",
        memory=Memory(
            id=memory_id,
            content=turn.text,
            created_at=now,
            occurred_at=turn.at,
            source=source,
            thread=turn.thread,
        ),
    )


async def measure_rebuild(system: System) -> float:
    """Make all indexes anew from the log; return the seconds for 10,000 records."""
    async with clients(system, 1) as (client,):
        records = int((await client.stats())["position"])
        begun_at = time.perf_counter()
        await client.call("POST", "/api/memories/rebuild", b"{}")
        await _until_rebuilt(client)
    return (time.perf_counter() - begun_at) * 10_000 / records


async def _until_rebuilt(client: Client) -> None:
    """Wait until a rebuild was seen to run, and then to have ended."""
    async with asyncio.timeout(PATIENCE_S):
        while (await client.stats())["rebuild"] is None:
            await asyncio.sleep(0.01)
    await client.until_found()
