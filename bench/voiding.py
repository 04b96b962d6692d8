"""From the acceptance of a user message to its session's follow-ups being void, on the log.

Both ends are instants of the broker's own clock: when the message was stored, and when the turn
that voids the follow-ups was. (What decides is the first alone: from then on no claim of a
follow-up succeeds.)
"""

from __future__ import annotations

import asyncio
import json
import random
from datetime import datetime

from bench.load import Http, connect_http, head_of
from bench.numbers import percentile
from bench.system import System
from vigil.contracts import decode_turn
from vigil.subjects import SessionKey

SESSIONS = 100
ROUNDS = 10
WINDOW_S = 0.5
"""The 100 people write within this, at random: 200 messages a second."""


async def measure(system: System) -> dict[str, float]:
    """Return p50_ms and p99_ms of 100 sessions with an open follow-up, ten times over."""
    keys = [SessionKey("me", "vigil", f"void-{i}") for i in range(SESSIONS)]
    connections = [await connect_http(system.url) for _ in keys]
    chance = random.Random(1)
    accepted: set[tuple[SessionKey, int]] = set()

    async def post(http: Http, key: SessionKey, text: str) -> int:
        head = head_of(system.url, system.token, str(key))
        status, body = await http.post(head, json.dumps({"text": text}).encode())
        assert status == 202, body
        return int(json.loads(body)["seq"])

    async def write(http: Http, key: SessionKey) -> None:
        await asyncio.sleep(chance.uniform(0, WINDOW_S))
        accepted.add((key, await post(http, key, "hello")))

    pairs = list(zip(connections, keys, strict=True))
    for _ in range(ROUNDS):
        await asyncio.gather(*(post(h, k, "check back in 1000 seconds") for h, k in pairs))
        await asyncio.sleep(1.0)
        await asyncio.gather(*(write(h, k) for h, k in pairs))
        await asyncio.sleep(1.0)
    for http in connections:
        http.close()
    delays_ms = await _delays_ms(system, accepted)
    return {"p50_ms": percentile(delays_ms, 50), "p99_ms": percentile(delays_ms, 99)}


async def _delays_ms(system: System, accepted: set[tuple[SessionKey, int]]) -> list[float]:
    bus = await system.admin()
    try:
        keys = {key for key, _ in accepted}
        messages = [(k, one) for k in keys for one in await bus.read(k.stream, [k.in_user])]
        turns = [(k, one) for k in keys for one in await bus.read(k.stream, [k.turns])]
    finally:
        await bus.close()
    stored: dict[tuple[SessionKey, int], datetime] = {(k, m.seq): m.stored_at for k, m in messages}
    voided: dict[tuple[SessionKey, int], datetime] = {}
    for key, message in turns:
        turn = decode_turn(message.data)
        place = key, turn.state.position
        if place in accepted and not turn.state.follow_ups:
            voided.setdefault(place, message.stored_at)
    return [(voided[place] - stored[place]).total_seconds() * 1000 for place in accepted]
