"""A quiet second person, alone and while somebody else takes what is everybody's.

One running system with the limits that it ships with. The quiet one says something now and then,
on a fresh connection every few messages; the other one attacks (`bench.attacks`), from another
address and with a token of their own. Both are processes of their own. What counts is the ratio of
the quiet one's latencies under the attack and just before and after it.

    python -m bench.neighbours URL TOKEN MESSAGES
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import uvloop
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from bench.attacks import ATTACKS
from bench.load import answer, connect_http, head_of
from bench.numbers import percentile, report
from bench.system import System
from vigil.bus.bus import Bus
from vigil.settings import credentials, tokens

ATTACKER: Final = "mallory"
SETTINGS: Final = {
    "VIGIL_GATEWAY__RATE_PER_S": "2000",
    "VIGIL_GATEWAY__RATE_BURST": "4000",
    "VIGIL_MODEL__REHEARSAL_WORD_MS": "1",
}
"""The limits that it ships with, which other parts lift; and a model that takes its while."""
FILES: Final = 4096
"""What the system may have open: a common limit, and few enough to be used up here."""
CONVERSATIONS: Final = 4
MESSAGES: Final = 20
"""Of each conversation, in one measurement."""
MESSAGES_A_CONNECTION: Final = 5
PAUSE_S: Final = 0.05
"""Between an answer and the next message: somebody quiet, not a load."""
READY_S: Final = 120.0
ANSWER_S: Final = 30.0
"""After which the quiet one gives up; whatever fails counts as having taken that long."""


class Latencies(NamedTuple):
    """Of each message, in ms: until it was accepted, and until the answer was on the socket."""

    accepted_ms: list[float]
    answered_ms: list[float]

    def __add__(self, other: Any) -> Latencies:
        return Latencies(self[0] + other[0], self[1] + other[1])


async def measure(system: System) -> None:
    """Report p50 and p99 alone and under each attack, and the ratio of both p99."""
    token = await _token(system)
    await _quiet(system)  # the first messages open the sessions
    for name in ATTACKS:
        before = await _quiet(system)
        async with _under(name, system, token) as facts:
            attacked = await _quiet(system)
        idle = before + await _quiet(system)
        for what, ours, alone in zip(("accept", "answer"), attacked, idle, strict=True):
            _report(f"neighbour_{name}_{what}", ours, alone, facts)


def _report(name: str, attacked: list[float], idle: list[float], facts: dict[str, Any]) -> None:
    p99_ms, idle_p99_ms = percentile(attacked, 99), percentile(idle, 99)
    report(f"{name}_p50_ms", percentile(attacked, 50), "ms", idle=round(percentile(idle, 50), 3))
    report(f"{name}_p99_ms", p99_ms, "ms", idle=round(idle_p99_ms, 3))
    report(f"{name}_p99_vs_idle", p99_ms / idle_p99_ms, "ratio", aim="<= 3", attack=facts)


async def _token(system: System) -> str:
    """Make the attacker's token, as `vigil token create` does."""
    seed = credentials.load(system.home / "nkeys", "operator")
    bus = await Bus.connect(system.nats_url, role="operator", seed=seed)
    try:
        return await tokens.create(bus, user=ATTACKER, now=datetime.now(UTC))
    finally:
        await bus.close()


async def _quiet(system: System) -> Latencies:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.neighbours", system.url, system.token, str(MESSAGES),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    if process.returncode != 0:
        raise RuntimeError("the quiet person failed")
    return Latencies(*json.loads(output))


@contextlib.asynccontextmanager
async def _under(name: str, system: System, token: str) -> AsyncIterator[dict[str, Any]]:
    """Attack for as long as the block lasts; afterwards the facts tell what became of it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.attacks", name, system.url, token,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(READY_S):
            facts: dict[str, Any] = json.loads(await process.stdout.readline())
        yield facts
        process.stdin.close()
        facts.update(json.loads(await process.stdout.readline()))
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


# ---------------------------------------------------------------- the quiet one


async def _converse(url: str, token: str, name: str, messages: int, found: Latencies) -> None:
    key = f"me:vigil:quiet-{name}"
    for _ in range(messages // MESSAGES_A_CONNECTION):
        try:
            async with asyncio.timeout(ANSWER_S):
                await _say_some(url, token, key, found)
        except (OSError, TimeoutError, RuntimeError, WebSocketException) as error:
            print(f"{key}: {error!r}", file=sys.stderr)
            found.accepted_ms.append(ANSWER_S * 1000)
            found.answered_ms.append(ANSWER_S * 1000)


async def _say_some(url: str, token: str, key: str, found: Latencies) -> None:
    """Say a few things on connections of their own; opening them counts for the first one."""
    begun_at = time.perf_counter()
    http = await connect_http(url)
    address = f"ws://{urlsplit(url).netloc}/api/ws?session={key}"
    headers = {"Authorization": f"Bearer {token}"}
    head = head_of(url, token, key)
    async with connect(
        address, additional_headers=headers, compression=None, proxy=None, open_timeout=ANSWER_S
    ) as socket:
        for number in range(MESSAGES_A_CONNECTION):
            status, body = await http.post(head, b'{"text":"message %d"}' % number)
            if status != 202:
                raise RuntimeError(f"{status}: {body!r}")
            found.accepted_ms.append((time.perf_counter() - begun_at) * 1000)
            await answer(socket, json.loads(body)["event_id"])
            found.answered_ms.append((time.perf_counter() - begun_at) * 1000)
            await asyncio.sleep(PAUSE_S)
            begun_at = time.perf_counter()
    http.close()


async def main(url: str, token: str, messages: int) -> None:
    found = Latencies([], [])
    names = map(str, range(CONVERSATIONS))
    await asyncio.gather(*(_converse(url, token, name, messages, found) for name in names))
    print(json.dumps(found))


if __name__ == "__main__":
    _, where, secret, each = sys.argv
    uvloop.run(main(where, secret, int(each)))
