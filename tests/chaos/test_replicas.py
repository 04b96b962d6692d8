"""Two replicas share the sessions; when one of each dies, the others go on with all of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.chaos.arena import Arena, running_arena
from tests.chaos.clients import Client

pytestmark = pytest.mark.chaos

MOVED_WITHIN_S = 10.0
"""The issue's number. A wake that the dead replica held comes back 8 s after it was handed out."""
MARGIN_S = 1.5
"""For posting, the model, and the socket, which are in the measured time, too."""
PATIENCE_S = 60.0
PROBES = 3
PROBE_EVERY_S = 0.2


def _answers(arena: Arena) -> int:
    return sum(s.answered_at_s is not None for c in arena.clients for s in c.records.sent)


def _waiting(arena: Arena, killed_s: float) -> list[str]:
    """The sessions that wait for an answer since before the kill."""
    return [
        client.records.session
        for client in arena.clients
        for sent in client.records.sent
        if sent.answered_at_s is None and sent.sent_at_s < killed_s
    ]


async def _probed(client: Client) -> float:
    """Talk in a session that has nothing to move; return how long it waited at most.

    The first wake may still be handed to the dead replica.
    """
    gaps_s = [0.0]
    await client.answered(await client.say("hello, this is {m}"))
    while client.is_talking:
        sent = await client.say("hello, this is {m}")
        await client.answered(sent)
        if sent.answered_at_s is not None:
            gaps_s.append(sent.answered_at_s - sent.sent_at_s)
        await asyncio.sleep(PROBE_EVERY_S)
    return max(gaps_s)


async def test_sessions_of_a_dead_replica_move(tmp_path: Path, seed: int, is_long: bool) -> None:
    """S-1, S-4, S-10, X-5: one cortex and one delivery killed for good; every session goes on.

    What a busy machine takes for any answer is measured meanwhile, in sessions that had nothing
    to move, and doesn't count. Long: 100 sessions. Short: 8.
    """
    sessions = 100 if is_long else 8
    async with running_arena(tmp_path, seed) as arena:
        for name in ("gateway", "cortex", "cortex:2", "delivery", "delivery:2", "scheduler"):
            arena.processes.start(name)
        await arena.talk(sessions)
        await arena.until(lambda: _answers(arena) > 3 * sessions, PATIENCE_S, "all talk")
        assert arena.processes.kill("cortex", for_good=True)
        assert arena.processes.kill("delivery:2", for_good=True)
        killed_s = arena.now_s()
        talking = list(arena.clients)
        probes = [await arena.client(f"probe{number}") for number in range(PROBES)]
        probing = [asyncio.create_task(_probed(probe)) for probe in probes]
        await asyncio.sleep(MOVED_WITHIN_S)  # each says something to whoever is left
        await arena.until(lambda: not _waiting(arena, killed_s), PATIENCE_S, "all moved")
        await arena.hush()
        usual_s = max(await asyncio.gather(*probing))
        wrong = await arena.verdict()
        assert not wrong, wrong
        gaps_s = [
            sent.answered_at_s - sent.sent_at_s
            for client in talking
            for sent in client.records.sent
            if sent.answered_at_s is not None and sent.answered_at_s > killed_s
        ]
        longest_s = max(gaps_s)
        print(
            f"\nreplicas: {sessions} sessions, longest gap {longest_s:.1f} s, else {usual_s:.1f} s"
        )
        print(arena.counts())
        assert longest_s - usual_s <= MOVED_WITHIN_S + MARGIN_S
