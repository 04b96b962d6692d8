"""A quiet second person's commands, alone and beside one who takes all the places or all the disk.

The executor runs in this process with the limits that it ships with, but for a smaller quota; its
commands are real ones in the best sandbox that works here. Instants are the broker's own: of a turn
with a call, stored, and of the call's result, stored.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple

from bench.numbers import percentile, report
from tests.support.executing import session_of
from tests.support.memories import Session, call_of
from tests.support.stack import Stack, running_stack
from vigil.contracts import CallTool, ToolResultEvent, decode_event, decode_turn
from vigil.subjects import SessionKey

QUIET: Final = SessionKey("me", "vigil", "quiet")
ATTACKER: Final = "mallory"
CALLS: Final = 40
"""Of the quiet one, one after the other, in one measurement."""
SLEEPS: Final = 40
FILLERS: Final = 4
QUOTA_BYTES: Final = 512 * 1024**2
FILL: Final = (
    "while :; do for n in $(seq 100); do head -c 32M /dev/zero > f$n || break; done; rm -f f*; done"
)


class Attacked(NamedTuple):
    """Latencies of the quiet person's calls, in ms."""

    attacked_ms: list[float]
    idle_ms: list[float]


async def measure(home: Path) -> None:
    """Report p50 and p99 beside each attack, and the ratio of p99 to that of the idle ones."""
    attacks = {"slots": [f"sleep {900 + n}" for n in range(SLEEPS)], "disk": [FILL] * FILLERS}
    for name, commands in attacks.items():
        found = await _beside(home / name, commands)
        p99_ms, idle_p99_ms = percentile(found.attacked_ms, 99), percentile(found.idle_ms, 99)
        idle_p50_ms = percentile(found.idle_ms, 50)
        p50_ms = percentile(found.attacked_ms, 50)
        report(f"share_{name}_p50_ms", p50_ms, "ms", idle=round(idle_p50_ms, 3))
        report(f"share_{name}_p99_ms", p99_ms, "ms", idle=round(idle_p99_ms, 3))
        report(f"share_{name}_p99_vs_idle", p99_ms / idle_p99_ms, "ratio", aim="<= 3")


async def _beside(home: Path, commands: list[str]) -> Attacked:
    home.mkdir()
    executor = {"workspace_bytes_max": QUOTA_BYTES}
    async with running_stack(home, services=("executor",), executor=executor) as stack:
        quiet = await session_of(stack, QUIET)
        await _says(quiet, 5)  # the first ones make the workspace
        idle = await _says(quiet, CALLS)
        async with _attack(stack, commands):
            attacked = await _says(quiet, CALLS)
        return Attacked(attacked, idle)


async def _says(quiet: Session, count: int) -> list[float]:
    """Run commands of the quiet person, one after the other -> how long each took."""
    calls = []
    for _ in range(count):
        calls.append(_shell(QUIET, "echo hello > note; cat note", quiet.turns + 1))
        await quiet.turn(calls[-1])
        result = await quiet.result(calls[-1])
        if result.payload.is_error:
            raise RuntimeError(result.payload.content)
    turns = await quiet.bus.read(QUIET.stream, [QUIET.turns])
    results = await quiet.bus.read(QUIET.stream, [QUIET.in_event("tool_result")])
    begun = {
        effect.id: turn.stored_at for turn in turns for effect in decode_turn(turn.data).effects
    }
    ended = {_answered(message.data): message.stored_at for message in results}
    return [(ended[one.id] - begun[one.id]) / timedelta(milliseconds=1) for one in calls]


def _answered(data: bytes) -> str:
    event = decode_event(data)
    assert isinstance(event, ToolResultEvent)
    return event.payload.call_id


def _shell(key: SessionKey, command: str, ordinal: int) -> CallTool:
    arguments = {"command": command, "timeout_s": 60}
    return call_of("shell", arguments, ordinal, key=key, service="executor", risk="external")


@contextlib.asynccontextmanager
async def _attack(stack: Stack, commands: list[str]) -> AsyncIterator[None]:
    """Have the attacker run these, all at once, for as long as the block lasts; what is ended is
    asked for again."""

    async def again(command: str, number: int) -> None:
        key = SessionKey(ATTACKER, "vigil", f"attack-{number}")
        session = await session_of(stack, key)
        while True:
            one = _shell(key, command, session.turns + 1)
            await session.turn(one)
            # Seldom: they look from the process that is measured.
            while one.id not in await session.results():
                await asyncio.sleep(1.0)

    tasks = [asyncio.create_task(again(one, n)) for n, one in enumerate(commands)]
    await asyncio.sleep(2.0)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
