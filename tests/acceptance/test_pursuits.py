"""Goals and preferences in conversations, through all services (SPEC G-2, G-3, P-6)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from tests.support.agent import Call, ask, ask_in_steps
from tests.support.world import Person, StoppedClock, World, running_world

pytestmark = pytest.mark.asyncio(loop_scope="module")

USED: Final = "How the person likes things"
UNSURE: Final = "What they may like, not sure yet"
HALF_A_YEAR_S: Final = 180 * 86_400


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        home: Path = tmp_path_factory.mktemp("home")
        async with running_world(home, patch, has_hands=True) as running:
            yield running


def lesson(key: str, value: Any, how: str = "observed") -> Call:
    because = f"{how} today"
    given = {"category": "communication", "key": key, "value": value, "how": how}
    return "learn_preference", given | {"because": because}


async def shown(world: World, person: Person, text: str = "hi") -> str:
    """What the model is shown of the present when the person writes."""
    await person.exchange(text)
    return world.agent.requests[-1].present


async def test_what_one_conversation_learns_others_go_by(world: World) -> None:
    """G-3: from .7 on without a word; below it's asked about; time takes what isn't confirmed."""
    ann = await world.person("ann:vigil:t1", has_socket=False)
    assert "likes things" not in await shown(world, ann)
    await ann.exchange(
        ask(lesson("length", "short", "said"), lesson("tone", "dry"), lesson("emoji", True))
    )
    await ann.exchange(ask(lesson("emoji", True, "corrected")))
    other = await world.person("ann:vigil:t2", has_socket=False)
    present = await shown(world, other)
    used, unsure = present.partition(USED)[2].split(UNSURE)
    assert "- communication, emoji: not true\n- communication, length: short\n" in used
    assert "- communication, tone: dry" in unsure
    request = world.agent.requests[-1]
    assert not any("length: short" in part for part in request.system), "a cache holds these"
    bob = await world.person("bob:vigil:t1", has_socket=False)
    assert "likes things" not in await shown(world, bob)
    (known,) = [
        one
        for one in (await ann.http.get("/api/preferences")).json()["preferences"]
        if one["key"] == "length"
    ]
    assert (known["confidence"], known["level"]) == (0.9, "conviction")
    assert known["learned_from"][0]["session_key"] == ann.key
    assert isinstance(world.clock, StoppedClock)
    world.clock.move(HALF_A_YEAR_S)
    used, unsure = (await shown(world, other, "later")).partition(USED)[2].split(UNSURE)
    assert "emoji: not true" in used, "a correction stands"
    assert "length: short" in unsure
    assert "tone" not in used + unsure, "forgotten"


async def test_outside_content_teaches_nothing_and_lets_nothing_be_pursued(world: World) -> None:
    """G-3, X-3: neither by itself, nor when the person then goes on in that conversation."""
    eve = await world.person("eve:vigil:t1", has_socket=False)
    evil = ("goal_create", {"description": "send all letters on"})
    calls = ask(lesson("length", "long"), evil)
    await eve.talk.ended(await eve.talk.outside(calls))
    said = ask(lesson("length", "long", "said"))
    await eve.exchange(said.replace("long", "lon\\u0067"))  # another word than what is taught
    assert (await eve.http.get("/api/preferences")).json()["preferences"] == []
    (goal,) = (await eve.http.get("/api/goals")).json()["goals"]
    assert (goal["status"], goal["origin"], goal["is_tainted"]) == ("paused", "self", True)


async def test_a_goal_is_set_split_and_reached_in_words(world: World) -> None:
    """G-2: by tools; why tells who set it, and a late answer is told to the model."""
    dan = await world.person("dan:vigil:t1", has_socket=False)
    until = "2100-01-01T00:00:00Z"
    await dan.exchange(ask(("goal_create", {"description": "Ship it", "deadline_at": until})))
    (goal,) = (await dan.http.get("/api/goals")).json()["goals"]
    assert (goal["status"], goal["kind"], goal["origin"]) == ("active", "timed", "explicit")
    parts = [{"description": "Tests"}, {"description": "Notes"}]
    await dan.exchange(
        ask_in_steps(
            [("goal_split", {"id": goal["id"], "parts": parts})],
            [("goal_list", {})],
            [("goal_update", {"id": goal["id"], "status": "completed", "why": "it is out"})],
        )
    )
    there = (await dan.http.get("/api/goals")).json()["goals"]
    assert {(one["description"], one["parent"]) for one in there} == {
        ("Tests", goal["id"]),
        ("Notes", goal["id"]),
    }
    whole = (await dan.http.get(f"/api/goals/{goal['id']}")).json()
    assert (whole["status"], whole["history"][-1]["why"]) == ("completed", "it is out")
    story = [s["text"] for s in (await dan.http.get(f"/api/why/{goal['id']}")).json()["steps"]]
    assert "It set the goal “Ship it”, as active" in " ".join(story), story
