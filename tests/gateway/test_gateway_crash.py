"""The gateway killed while it takes in events of programs, by a process that really ends there."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

from tests.chaos.processes import launched
from tests.support.gateway import Gate, until
from tests.support.programs import are_taken_in
from tests.support.stack import Stack, running_stack
from vigil import crash
from vigil.contracts import External, decode_dead_letter, decode_event

POINTS = [name for name in crash.POINTS if name.startswith("gateway.event.")]
ANN = "ann:vigil:t1"


def event(number: int) -> bytes:
    return json.dumps(
        {
            "specversion": "1.0",
            "id": str(number),
            "source": "urn:test",
            "type": "t",
            "subject": ANN,
            "data": "red",
        }
    ).encode()


async def _run_until_crash(stack: Stack, home: Path, point: str) -> None:
    environment = os.environ | {
        "VIGIL_HOME": str(home),
        "NATS_URL": stack.broker.url,
        "VIGIL_PORT": "0",
        "VIGIL_CRASH_AT": f"{point}:1",
    }
    process = await launched("services.gateway", environment)
    try:
        assert await asyncio.wait_for(process.wait(), 30) == crash.EXIT_CODE
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _kill_and_go_on(home: Path, point: str) -> None:
    async with running_stack(home, services=()) as stack:
        gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        for data in (event(1), b"poison", event(2)):
            await gate.admin.publish("event.ann.ci", data)
        await _run_until_crash(stack, home, point)
        await stack.start("gateway")

        await until(
            lambda: are_taken_in(gate.admin), f"all are taken in after {point}", within_s=30
        )
        stored = [decode_event(message.data) for message in await gate.stored(ANN)]
        told = [one.payload.origin_id for one in stored if isinstance(one, External)]
        assert sorted(told) == ["1", "2"], point
        letters = [decode_dead_letter(m.data) for m in await gate.admin.read("DEAD", ["dead.>"])]
        assert [letter.id for letter in letters] == ["EVENTS-2"], point


async def test_killed_at_each_step(tmp_path: Path) -> None:
    """SPEC X-5, X-6: what a program published is taken in or buried once, whatever is killed."""
    assert len(POINTS) == 3
    await asyncio.gather(*(_kill_and_go_on(tmp_path / point, point) for point in POINTS))
