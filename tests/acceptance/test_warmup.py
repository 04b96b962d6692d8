"""What begins unasked waits for memory after a start, and nobody else does (SPEC C-3)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from services.scheduler import warmth
from tests.support.pauses import pauses
from tests.support.world import Person, StoppedClock, World, running_world

PATIENCE_S = 30.0


async def _states(person: Person) -> list[str]:
    own = {one["id"] for one in (await person.http.get("/api/cron")).json()["rows"]}
    found = (await person.http.get("/api/slots")).json()["slots"]
    return [one["state"] for one in found[::-1] if one["row"] in own]


async def _until(world: World, person: Person, count: int) -> list[str]:
    async with asyncio.timeout(PATIENCE_S):
        pause_s = pauses()
        while len(states := await _states(person)) < count:
            await asyncio.sleep(next(pause_s))
    return states


async def _told(person: Person) -> list[Any]:
    found = [(await person.http.get(path)).json() for path in ("/readyz", "/api/status")]
    return [one["warmth"] for one in found]


async def _cold(person: Person) -> dict[str, int]:
    found: dict[str, int] = (await person.http.get("/api/status")).json()["cold_sessions"]
    return found


async def test_jobs_wait_until_memory_is_whole_and_messages_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-3: after a start, once; readiness and status say how far it is."""
    monkeypatch.setattr(warmth, "AGAIN_S", 0.05)
    patient = {"warm_wait_s": 600, "recall_tokens": 500}
    async with running_world(tmp_path, monkeypatch, has_hands=True, memory=patient) as world:
        assert isinstance(world.clock, StoppedClock)
        ann = await world.person("ann:vigil:main", has_socket=False)
        made = await ann.http.post(
            "/api/cron", json={"name": "look", "prompt": "Look", "interval_s": 3600}
        )
        assert made.status_code == 201, made.text
        assert await _until(world, ann, 2) == ["running", "ran"]
        assert await _told(ann) == ["warm", "warm"]

        # Memory that goes away later holds up nothing.
        await world.stack.stop("memory")
        world.clock.move(3600)
        assert await _until(world, ann, 4) == ["running", "ran"] * 2

        # After a start what is due waits; who writes is answered.
        await world.stack.stop("scheduler")
        await world.stack.start("scheduler")
        await world.advance(3600, without="memory")
        await asyncio.sleep(1.1)  # readiness is asked for once a second
        assert await _told(ann) == ["cold", "cold"]
        await ann.say("hello")
        await world.until(lambda: ann.talk.texts[-1:] == ["re: hello"])
        assert len(await _states(ann)) == 4
        # A session that begins now is served, counted and told; ann's began before.
        before = await _cold(ann)
        bob = await world.person("bob:vigil:main", has_socket=False)
        await bob.say("hello")
        await world.until(lambda: bob.talk.texts[-1:] == ["re: hello"])
        await bob.say("and again")
        await world.until(lambda: bob.talk.texts[-1:] == ["re: and again"])
        async with asyncio.timeout(PATIENCE_S):
            pause_s = pauses()
            while (counted := await _cold(ann)) == before:  # asked for once a second, too
                await asyncio.sleep(next(pause_s))
        assert counted == before | {"memory": before.get("memory", 0) + 1}
        (message, *_) = (await bob.http.get("/api/sessions/bob:vigil:main")).json()["messages"]
        why = (await bob.http.get(f"/api/why/{message['id']}")).text
        assert "memory could not be reached; the session began so" in why
        await world.stack.start("memory")
        assert await _until(world, ann, 6) == ["running", "ran"] * 3
