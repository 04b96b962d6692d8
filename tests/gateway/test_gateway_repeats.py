"""A name used again after the broker has forgotten it: stored once, for a day (SPEC X-5)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.gateway.test_gateway_hooks import BODY, HOOKS, signed
from tests.gateway.test_gateway_whole import Process
from tests.support.approvals import ID, ask, request
from tests.support.gateway import Gate, frame_of, until
from tests.support.stack import running_stack
from vigil.bus.bus import Message
from vigil.crash import EXIT_CODE
from vigil.subjects import SessionKey

ANN = "ann:vigil:t1"
MESSAGES = f"/api/sessions/{ANN}/messages"
KEYED = {"text": "hi", "idempotency_key": "k"}
POINTS = (
    "gateway.key.reserved",
    "gateway.message.before_publish",
    "gateway.message.after_publish",
    "gateway.key.noted",
)
Send = Callable[[Gate], Awaitable[dict[str, Any]]]


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncIterator[Gate]:
    stack_of = running_stack(tmp_path, services=("gateway",), hooks=dict(HOOKS))
    async with stack_of as stack:
        gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        try:
            yield gate
        finally:
            await gate.close()


async def forget_ids(gate: Gate) -> None:
    """Let the broker forget the ids of messages, as it does after two minutes."""
    found = await gate.admin.api("STREAM.INFO.SESSIONS", {})
    config = found["config"] | {"duplicate_window": 100_000_000}
    await gate.admin.api("STREAM.UPDATE.SESSIONS", config)
    probe = SessionKey("probe", "vigil", "t").in_user

    async def has_forgotten() -> bool:
        ack = await gate.admin.publish(probe, b"{}", msg_id="probe")
        return not ack.is_duplicate

    await gate.admin.publish(probe, b"{}", msg_id="probe")
    await until(has_forgotten, "the broker forgets")


async def forget_place(gate: Gate) -> None:
    """Undo the last step, as a kill before it does: the name has no place."""

    async def entry() -> Message:
        # Not by a reading: what is replaced meanwhile may be missing from it.
        found = await gate.admin.get_last("KV_IDEMPOTENCY", "$KV.IDEMPOTENCY.>")
        assert found is not None
        return found

    async def is_noted() -> bool:
        return "seq" in json.loads((await entry()).data)

    await until(is_noted, "the place is noted")
    found = await entry()
    cut = {name: value for name, value in json.loads(found.data).items() if name != "seq"}
    await gate.admin.publish(found.subject, json.dumps(cut).encode())


# ---------------------------------------------------------------- every way in


async def by_http(gate: Gate) -> dict[str, Any]:
    ann = await gate.person("ann")
    return _accepted(await ann.post(MESSAGES, json=KEYED))


async def by_socket(gate: Gate) -> dict[str, Any]:
    socket = await gate.socket(await gate.token("ann"), ANN)
    await socket.send(json.dumps({"type": "message", "text": "hi", "id": "k"}))
    frame = await frame_of(socket)
    return {"event_id": frame["event_id"], "seq": frame["seq"]}


async def by_event(gate: Gate) -> dict[str, Any]:
    ann = await gate.person("ann")
    event = {
        "specversion": "1.0", "id": "1", "source": "urn:test", "type": "t",
        "subject": ANN, "data": "red",
    }  # fmt: skip
    headers = {"content-type": "application/cloudevents+json"}
    return _accepted(await ann.post("/api/events", content=json.dumps(event), headers=headers))


async def by_hook(gate: Gate) -> dict[str, Any]:
    client = await gate.http()
    return _accepted(await client.post("/hooks/ci", content=BODY, headers=signed()))


async def by_verdict(gate: Gate) -> dict[str, Any]:
    if not await gate.admin.read("BOARD", ["board.>"]):
        await ask(gate, request())
    ann = await gate.person("ann")
    return _accepted(await ann.patch(f"/api/approvals/{ID}", json={"verdict": "accept"}))


def _accepted(answer: httpx2.Response) -> dict[str, Any]:
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize("send", [by_http, by_socket, by_event, by_hook, by_verdict])
async def test_a_name_without_a_place_is_looked_for(gate: Gate, send: Send) -> None:
    """X-5: the broker has forgotten it, and a kill kept its place from being noted."""
    first = await send(gate)
    await forget_place(gate)
    await forget_ids(gate)
    for number in range(3):  # what came since doesn't hide it
        ann = await gate.person("ann")
        _accepted(await ann.post(MESSAGES, json={"text": str(number)}))
    stored = len(await gate.stored(ANN))
    assert [await send(gate) for _ in range(2)] == [first, first]
    assert len(await gate.stored(ANN)) == stored


async def test_reserved_and_never_stored(gate: Gate) -> None:
    """X-5: ten repeats at once of what was reserved and not published: one of them stores it."""
    ann = await gate.person("ann")
    other = {"text": "ho", "idempotency_key": "other"}
    _accepted(await ann.post(MESSAGES, json=KEYED))
    await forget_place(gate)
    (message,) = await gate.stored(ANN)
    await gate.admin.api("STREAM.MSG.DELETE.SESSIONS", {"seq": message.seq})
    await forget_ids(gate)
    answers = await asyncio.gather(
        *(ann.post(MESSAGES, json=KEYED) for _ in range(10)),
        *(ann.post(MESSAGES, json={"text": str(number)}) for number in range(10)),
        ann.post(MESSAGES, json=other),
    )
    places = {_accepted(answer)["seq"] for answer in answers[:10]}
    assert len(places) == 1
    texts = [json.loads(m.data)["payload"]["text"] for m in await gate.stored(ANN)]
    assert sorted(texts) == sorted(["hi", "ho", *map(str, range(10))])


@pytest.mark.parametrize("point", POINTS)
async def test_killed_at_each_step_of_a_name(gate: Gate, point: str) -> None:
    """X-5: killed anywhere, repeated when the broker has forgotten it: on the log once."""
    headers = {"Authorization": f"Bearer {await gate.token('ann')}"}
    process = Process(gate)
    try:
        await process.start(f"{point}:1")
        async with httpx2.AsyncClient(base_url=process.url, headers=headers) as client:
            with contextlib.suppress(httpx2.TransportError):
                await client.post(MESSAGES, json=KEYED)
        assert await process.ended() == EXIT_CODE
        await forget_ids(gate)
        ann = await gate.person("ann")
        for _ in range(2):
            _accepted(await ann.post(MESSAGES, json=KEYED))
        assert len(await gate.stored(ANN)) == 1
    finally:
        await process.stop()


async def test_killed_after_a_look(gate: Gate) -> None:
    """X-5: the second one dies as well, between its look and its publish."""
    headers = {"Authorization": f"Bearer {await gate.token('ann')}"}
    for point in ("gateway.key.reserved", "gateway.key.looked"):
        process = Process(gate)
        try:
            await process.start(f"{point}:1")
            async with httpx2.AsyncClient(base_url=process.url, headers=headers) as client:
                with pytest.raises(httpx2.TransportError):
                    await client.post(MESSAGES, json=KEYED)
            assert await process.ended() == EXIT_CODE
        finally:
            await process.stop()
        await forget_ids(gate)
    ann = await gate.person("ann")
    _accepted(await ann.post(MESSAGES, json=KEYED))
    assert len(await gate.stored(ANN)) == 1
