"""A disk that is full under the gateway: told, refused, healed; nothing that was taken is lost."""

from __future__ import annotations

import asyncio
import shutil
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
        ballast.write_bytes(b"x" * 17_000_000)
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


@pytest.mark.usefixtures("own_broker")
async def test_a_full_disk_under_the_log_alone_is_refused_at_once(
    tmp_path: Path, small_disk: Path
) -> None:
    """X-5: the home has room, and the streams are elsewhere: what is asked is where they are."""
    home = tmp_path / "home"
    (home / "nats").mkdir(parents=True)
    (home / "nats" / "data").symlink_to(small_disk)
    async with running_gateway(home, disk_free_bytes_min=4_000_000) as gate:
        ann = await gate.person("ann")
        answer = await ann.post("/api/sessions/ann:vigil:t1/messages", json={"text": "before"})
        assert answer.status_code == 202
        room = shutil.disk_usage(small_disk).free
        (small_disk / "ballast").write_bytes(b"x" * (room - 3_000_000))

        async def is_told() -> bool:  # what a disk has is looked at once a second
            return not (await ann.get("/readyz")).json()["checks"]["disk"]

        await until(is_told, "readyz tells of the disk")
        answer = await ann.post("/api/sessions/ann:vigil:t1/messages", json={"text": "too much"})
        assert (answer.status_code, "disk" in answer.json()["detail"]) == (503, True)
        assert gate.stack.contexts["gateway"].bus.unknown_outcomes == 0  # nothing was waited for
