"""Runs of the timetable that no model answered: begun again, and told once (SPEC J-2, J-4, J-5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from services.cortex.model import ModelAnswer, ModelError, ModelRequest
from tests.acceptance.test_cron import PATH, PATIENCE_S, made, move, said, slots, until
from tests.support.agent import Agent
from tests.support.pauses import pauses
from tests.support.world import Person, World, running_world
from vigil.contracts import decode_turn
from vigil.subjects import SessionKey
from vigil.timetable import reasons

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        home: Path = tmp_path_factory.mktemp("home")
        async with running_world(home, patch, has_hands=True) as running:
            yield running


OVERLOADED: Final = "the model's provider is overloaded (529)"


async def until_it_waits_for_a_model(world: World, entry: dict[str, Any]) -> None:
    """Wait until a run's session waits to ask its model again."""
    run = SessionKey.parse(entry["session"])
    async with asyncio.timeout(PATIENCE_S):
        for pause_s in pauses():
            turns = [decode_turn(one.data) for one in await world.admin.read("SYSTEM", [run.turns])]
            if any(turn.state.loop and turn.state.loop.retry for turn in turns):
                return
            await asyncio.sleep(pause_s)


async def why(person: Person, row: dict[str, Any]) -> str:
    """Return what is told of a row's newest run."""
    answer = await person.http.get(f"/api/why/{row['id']}")
    assert answer.status_code == 200, answer.text
    return answer.text


def without_a_model(world: World, prompt: str) -> Any:
    """Have no model answer what has that prompt; return what ends that, and closes its circuit."""
    behave = world.agent.behave

    async def overloaded(request: ModelRequest) -> ModelAnswer:
        if prompt in Agent.text_of(request):
            raise ModelError(OVERLOADED, is_retryable=True, retry_after_s=600.0)
        return await behave(request)

    async def end() -> None:
        world.agent.behave = behave
        admin = await world.admin_client()
        for one in (await admin.get("/api/health")).json()["circuits"]:
            await admin.post("/api/health/reset", json={"name": one["name"]})

    world.agent.behave = overloaded
    return end


async def test_what_no_model_answered_is_begun_again_and_told_once(world: World) -> None:
    """J-2, J-4: a provider that was away for minutes costs nobody the day's briefing. Each try is a
    session of its own, and nothing is said of those that failed."""
    amy = await world.person("amy:vigil:t1", has_socket=False)
    end = without_a_model(world, "nightly")
    row = await made(amy.http, "brief", prompt="nightly", interval_s=86_400, timeout_s=90)
    states = ["running"]
    for pause_s in (60, 120):
        entries = await until(amy.http, row, *states)
        await until_it_waits_for_a_model(world, entries[-1])
        move(world, 91)
        *_, waiting = await until(amy.http, row, *states, "waiting")
        assert waiting["reason"].startswith("It is begun again at ")
        assert waiting["reason"].endswith(f"No model answered: {OVERLOADED}.")
        assert "Its row begins it again later" in await why(amy, row)
        if pause_s == 120:
            await end()
        move(world, pause_s)
        states += ["waiting", "running"]
    found = await until(amy.http, row, *states, "late")
    assert len({one["session"] for one in found}) == 3
    assert {one["due_at"] for one in found} == {found[0]["due_at"]}
    home = world.talk("amy:vigil:main")
    await home.until(lambda: "re: nightly" in [one.text for one in home.said])
    assert await said(world, amy) == ["re: nightly"]
    shown = (await amy.http.get(f"{PATH}/{row['id']}")).json()
    assert (shown["runs"], shown["failures"], shown["running"]) == (1, 0, 0)
    assert "was begun again, as no model had answered" in await why(amy, row)


async def test_what_no_model_answers_at_all_is_told_once_as_failed(world: World) -> None:
    """J-2, J-5: when it would be too late to begin it again, and before its next time."""
    ned = await world.person("ned:vigil:t1", has_socket=False)
    end = without_a_model(world, "dawdle")
    row = await made(ned.http, "brief", prompt="dawdle", interval_s=600, timeout_s=90)
    (entry,) = await until(ned.http, row, "running")
    await until_it_waits_for_a_model(world, entry)
    move(world, 91)
    await until(ned.http, row, "running", "waiting")
    assert await said(world, ned) == []
    move(world, 60)
    *_, entry = await until(ned.http, row, "running", "waiting", "running")
    await until_it_waits_for_a_model(world, entry)
    move(world, 91)
    found = await until(ned.http, row, "running", "waiting", "running", "failed")
    await end()
    why = f"No model answered: {OVERLOADED}. It was tried 2 times."
    assert found[-1]["reason"] == f"it took longer than the 90 s that it has. {why}"
    told = f"The job 'brief' failed: it took longer than the 90 s that it has. {why}"
    home = world.talk("ned:vigil:main")
    await home.until(lambda: bool(home.said))
    assert await said(world, ned) == [told]


async def test_a_run_by_hand_stands_for_one_that_waits(world: World) -> None:
    """J-4: who doesn't wait for the next try is answered once; the one by hand fails at once."""
    pia = await world.person("pia:vigil:t1", has_socket=False)
    end = without_a_model(world, "hurry")
    row = await made(pia.http, "brief", prompt="hurry", interval_s=86_400, timeout_s=90)
    (entry,) = await until(pia.http, row, "running")
    await until_it_waits_for_a_model(world, entry)
    move(world, 91)
    await until(pia.http, row, "running", "waiting")
    await end()
    assert (await pia.http.post(f"{PATH}/{row['id']}/runs")).status_code == 202
    async with asyncio.timeout(PATIENCE_S):
        found: list[dict[str, Any]] = []
        pause_s = pauses()
        while sorted(one["state"] for one in found[2:]) != ["coalesced", "ran", "running"]:
            await asyncio.sleep(next(pause_s))
            found = await slots(pia.http, row)
    (given_up,) = [one for one in found if one["state"] == "coalesced"]
    assert (given_up["due_at"], given_up["reason"]) == (entry["due_at"], reasons.REPLACED)
    move(world, 3600)
    assert await said(world, pia) == ["re: hurry"]
    assert len(await slots(pia.http, row)) == 5


async def test_a_row_that_makes_up_for_nothing_is_not_begun_again(world: World) -> None:
    """J-4: `skip` holds for what no model answered, too: that fails at once."""
    kim = await world.person("kim:vigil:t1", has_socket=False)
    end = without_a_model(world, "now or never")
    row = await made(
        kim.http, "brief", prompt="now or never", interval_s=86_400, timeout_s=90, misfire="skip"
    )
    (entry,) = await until(kim.http, row, "running")
    await until_it_waits_for_a_model(world, entry)
    move(world, 91)
    found = await until(kim.http, row, "running", "failed")
    await end()
    why = f"No model answered: {OVERLOADED}."
    assert found[1]["reason"] == f"it took longer than the 90 s that it has. {why}"
