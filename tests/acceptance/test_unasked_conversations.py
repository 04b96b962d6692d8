"""Conversations in which only the agent spoke: their person finds them where the others are."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Cli
from tests.support.outside import say_from_outside
from tests.support.world import ANN, Person, World, running_world

BUILD = "ann:vigil:tbuild"


async def listed(person: Person, **query: Any) -> list[dict[str, Any]]:
    answer = await person.http.get("/api/sessions", params=query)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["sessions"])


def keys(found: list[dict[str, Any]]) -> list[str]:
    return [one["session_key"] for one in found]


async def told(world: World) -> Person:
    """Have something happen in two conversations: in one the person wrote, in one the agent only
    told something. Return who looks."""
    people = [await world.person(key, has_socket=False) for key in (ANN, BUILD)]
    await people[0].exchange("hello")
    await world.advance(20)
    await say_from_outside(people[1], "the build is broken")
    return people[0]


async def test_what_an_agent_only_told_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By HTTP and the command, in both orders, found by words, and as another gateway reads it; it
    has a title and is unread, can be named, and goes when it's deleted."""
    async with running_world(tmp_path, monkeypatch) as world:
        ann = await told(world)
        for order in ("key", "newest"):
            found = await listed(ann, order=order)
            assert keys(found) == ([ANN, BUILD] if order == "key" else [BUILD, ANN]), order
        (one,) = await listed(ann, words="broken")
        assert "the build is broken" in one["title"]
        assert one["session_key"] == BUILD
        assert one["is_unread"]
        assert one["said_at"]
        assert (one["messages"], one["last_at"]) == (0, None)
        first = await listed(ann, order="newest", limit=1)
        assert keys(await listed(ann, order="newest", after=first[0]["session_key"])) == [ANN]
        url = f"http://127.0.0.1:{world.gate.port}"
        cli = Cli(tmp_path / "cli", VIGIL_URL=url, VIGIL_TOKEN=ann.token)
        assert BUILD in (await asyncio.to_thread(cli, "sessions")).stdout

        path = f"/api/sessions/{BUILD}"
        named = await ann.http.patch(path, json={"title": "Builds", "read_to": 10_000})
        assert named.status_code == 200, named.text
        assert [(one["title"], one.get("is_unread", False)) for one in await listed(ann)] == [
            ("hello", True),
            ("Builds", False),
        ]

        # What came since a gateway looked, and what one that starts reads, is the same.
        late = await world.person("ann:vigil:xlate", has_socket=False)
        await world.advance(20)
        await say_from_outside(late, "and again")
        before = await listed(ann, order="newest")
        assert keys(before) == [late.key, BUILD, ANN]
        await world.gate.stack.stop("gateway")
        await world.gate.stack.start("gateway")
        again = await world.person(ANN, has_socket=False)
        assert await listed(again, order="newest") == before

        # Once the person writes there it's one like others, and it goes with its records.
        build = await world.person(BUILD, has_socket=False)
        await build.exchange("who broke it?")
        written = {one["session_key"]: one for one in await listed(again, order="newest")}
        assert list(written) == [BUILD, late.key, ANN]
        assert (written[BUILD]["messages"], written[BUILD]["last_at"] is None) == (1, False)
        assert (await again.http.request("DELETE", f"/api/sessions/{late.key}")).status_code == 202
        assert keys(await listed(again)) == [ANN, BUILD]
