"""A disk that is full under the gateway: told, refused, healed; nothing that was taken is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2
import pytest

from tests.support.gateway import running_gateway, until
from vigil.broker import process as broker
from vigil.subjects import SessionKey

MESSAGE = {"text": "x" * 30_000}


async def write_until_refused(ann: httpx2.AsyncClient, thread: str) -> list[int]:
    """Say something until that is refused; return what was taken."""
    taken: list[int] = []
    while True:
        key = f"{thread}-{len(taken)}"
        answer = await ann.post(
            f"/api/sessions/ann:vigil:{thread}/messages", json=MESSAGE | {"idempotency_key": key}
        )
        if answer.status_code != 202:
            assert answer.status_code == 503, answer.text
            return taken
        taken.append(answer.json()["seq"])


@pytest.mark.usefixtures("own_broker")
async def test_a_full_disk_is_told_and_heals_without_an_operator(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RELIABILITY 0.8: with the gate that refuses before it is full turned off."""
    monkeypatch.setattr(broker, "RESTART_PAUSE_S", 0.0)
    async with running_gateway(small_disk, disk_free_bytes_min=0) as gate:
        ballast = small_disk / "ballast"
        ballast.write_bytes(b"x" * 12_000_000)
        gate.stack.broker.watch()
        ann = await gate.person("ann")

        async def stores() -> bool:
            return bool((await ann.get("/readyz")).json()["checks"]["storage"])

        await until(stores, "a healthy beginning")
        threads = [f"t{number}" for number in range(4)]
        taken = await asyncio.gather(*(write_until_refused(ann, one) for one in threads))
        answer = await ann.get("/readyz")
        assert (answer.status_code, answer.json()["checks"]["storage"]) == (503, False)
        status = (await ann.get("/api/status")).json()
        (told,) = [one for one in status["services"] if one["service"] == "broker"]
        assert "can't store in" in told["problems"][0]
        ballast.unlink()
        await until(stores, "healed", within_s=30)
        for thread, seqs in zip(threads, taken, strict=True):
            session = SessionKey("ann", "vigil", thread)
            held = {one.seq for one in await gate.admin.read("SESSIONS", [session.in_user])}
            assert set(seqs) <= held
            again = await ann.post(f"/api/sessions/{session}/messages", json={"text": "after"})
            assert again.status_code == 202
        assert sum(map(len, taken)) > 0
