"""What a person sets of their hours holds for what is held already, too; and their own pause.

LOOPS L-5, L-11: by API and by telling the agent, through all services, with a clock that stands.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
import pytest_asyncio

from services.cortex.core.work.routing import ONLY_THE_PERSON
from services.cortex.model import ModelAnswer, ModelRequest
from services.executor.own_tools.settings import NO_TEAM
from tests.cortex.driver import answer, call
from tests.support.agent import ask, follow_up
from tests.support.gateway import assert_problem
from tests.support.pauses import pauses
from tests.support.scripted_model import say
from tests.support.talk import PATIENCE_S, Talk
from tests.support.world import Person, World, running_world
from vigil.contracts import ToldEvent, ToldPayload, ToolResultBlock, encode

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH: Final = "/api/person"
CRON: Final = "/api/cron"
HOUR: Final = 3600.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        home: Path = tmp_path_factory.mktemp("home")
        teams = {"crew": {"kind": "team", "members": ["kim"]}}
        async with running_world(home, patch, has_hands=True, agents=teams) as running:
            yield running


async def put(ann: Person, **wanted: str | None) -> dict[str, Any]:
    """Set what holds for a person."""
    answer = await ann.http.patch(PATH, json=wanted)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def known(ann: Person, **wanted: str | None) -> None:
    """Set it, and wait until the person's conversation knows."""
    language = f"en-{ann.talk.key.user}"
    await put(ann, language=language, **wanted)
    requests = ann.world.agent.requests
    while not requests or requests[-1].situation.language != language:
        await ann.exchange("hello")


def hours(world: World, begin_h: float, end_h: float) -> str:
    """Return quiet hours in UTC, by how far they are from now."""
    begin, end = (world.clock.now() + timedelta(hours=h) for h in (begin_h, end_h))
    return f"{begin:%H:%M}-{end:%H:%M}"


async def due_in(ann: Person, timer_id: str) -> float:
    """Return in how many hours an open timer is due, as people see it."""
    timer = (await ann.timers())[timer_id]
    left = datetime.fromisoformat(timer["fire_at"]) - ann.world.clock.now()
    return left.total_seconds() / HOUR


async def held(world: World, name: str, **wanted: str) -> Person:
    """A person with hours that hold back a reminder of theirs that is due now."""
    ann = await world.person(f"{name}:vigil:t1", has_socket=False)
    await known(ann, **wanted)
    await ann.exchange(ask(follow_up("tea", 60, "Tea!", keep=True)))
    await world.advance(60)
    assert ann.followed_up == []
    assert "held" in ann.talk.notes
    return ann


async def said(ann: Person) -> None:
    await ann.talk.until(lambda: ann.followed_up == ["Tea!"])
    await ann.world.at_rest()
    assert await ann.timers() == {}


async def test_what_is_held_comes_as_soon_as_the_new_hours_let_it(world: World) -> None:
    ann = await held(world, "ann", quiet_hours=hours(world, -1, 8))
    await put(ann, quiet_hours="")
    await said(ann)

    told = (await ann.http.get(f"/api/why/{ann.talk.said[-1].id}")).json()["steps"]
    texts = [step["text"] for step in told if step["what"] == "timer.due"]
    assert texts == ["The follow-up “tea” came due.", "The hours that held back “tea” had changed."]


async def test_it_comes_no_earlier_than_the_new_hours_let_it(world: World) -> None:
    bob = await held(world, "bob", quiet_hours=hours(world, -1, 3))
    await put(bob, quiet_hours=hours(world, -1, 6))
    await bob.talk.until(lambda: bob.talk.notes.count("held") == 2)
    await world.at_rest()
    assert 5.9 < await due_in(bob, "tea") < 6
    await world.advance(5 * HOUR)
    assert bob.followed_up == []
    await world.advance(HOUR)
    assert bob.followed_up == ["Tea!"]


async def test_a_new_zone_ends_the_night(world: World) -> None:
    cat = await held(world, "cat", quiet_hours=hours(world, -1, 3))
    await put(cat, timezone="Asia/Tokyo")
    await said(cat)


async def test_what_changed_while_nobody_looked_counts_too(world: World) -> None:
    """The scheduler is away: who is active next finds that the hours are others by now."""
    dan = await held(world, "dan", quiet_hours=hours(world, -1, 8))
    await world.stack.stop("scheduler")
    await put(dan, quiet_hours=None)
    await world.stack.start("scheduler")
    await said(dan)


async def test_what_can_wait_comes_at_the_hour_that_they_set(world: World) -> None:
    """L-12, L-13: in their zone, as one message, and the same alert counted; then not again."""
    gil = await world.person("gil:vigil:main", has_socket=False)
    at = world.clock.now().astimezone(ZoneInfo("Asia/Tokyo")) + timedelta(hours=5)
    await known(gil, timezone="Asia/Tokyo", digest_at=f"{at:%H:%M}")
    before = len(gil.talk.said)
    await report(gil, "The disk is at 71 %.", row="disk")
    await report(gil, "It is done.", urgency="low")
    await report(gil, "The disk is at 72 %.", row="disk")
    await world.at_rest()
    now = [said.text for said in gil.talk.said[before:]]
    assert now == ["The disk is at 71 %."]
    await world.advance(4.9 * HOUR)
    assert len(gil.talk.said) == before + 1
    await world.advance(0.1 * HOUR)
    (digest,) = [said.text for said in gil.talk.said[before + 1 :]]
    assert digest == "Since then:\n- The disk is at 71 %. (1 more time)\n- It is done."
    await world.advance(24 * HOUR)
    assert len(gil.talk.said) == before + 3, "that the alert has gone"
    await world.advance(24 * HOUR)
    assert len(gil.talk.said) == before + 3


async def report(ann: Person, text: str, **of: Any) -> None:
    """Have another session of the agent's report something at home."""
    told = ToldEvent(
        id=uuid4().hex,
        session_key=str(ann.talk.key),
        created_at=ann.world.clock.now(),
        payload=ToldPayload(origin="gil:vigil:_cron-1f", text=text, is_ordered=True, **of),
    )
    await ann.talk.store(ann.talk.key.in_event(f"told.{told.id}"), encode(told))


async def test_a_pause_without_end_holds_until_it_is_taken_back(world: World) -> None:
    eve = await held(world, "eve", pause="on")
    assert 23.9 < await due_in(eve, "tea") <= 24
    await world.advance(30 * HOUR)
    assert eve.followed_up == []
    assert (await eve.http.get(PATH)).json()["pause"] == "on"
    (event,) = {event.id for event in eve.fired[:1]}
    told = (await eve.http.get(f"/api/why/{event}")).text
    assert "own pause" in told
    await put(eve, pause="")
    await said(eve)


async def test_a_pause_ends_by_itself_and_answers_go_on(world: World) -> None:
    until = (world.clock.now() + timedelta(hours=48)).replace(microsecond=0)
    fay = await held(world, "fay", pause=until.isoformat())
    assert 47.9 < await due_in(fay, "tea") <= 48
    await fay.exchange("still there?")
    assert fay.talk.texts[-1] == "re: still there?"
    await fay.exchange(ask(follow_up("late", 30 * HOUR, "Late!", keep=True)))
    assert f"the person's pause is over, {until:%Y-%m-%d %H:%M}" in told_of(fay)
    await world.advance(47 * HOUR)
    assert fay.followed_up == []
    await world.advance(HOUR)
    await fay.talk.until(lambda: sorted(fay.followed_up) == ["Late!", "Tea!"])
    assert (await put(fay, language="it"))["own"] == ["language"]


async def test_one_agent_is_paused_and_the_others_go_on(world: World) -> None:
    """L-5: of one's own by oneself, for everybody by an admin; for who else it works on."""
    una = await world.person("una:vigil:t1", has_socket=False)
    scout = await world.person("una:scout:t1", has_socket=False)
    uwe = await world.person("uwe:vigil:t1", has_socket=False)
    root = await world.gate.person("root", is_admin=True)
    pause, all_, own = "/api/pause", {"agent": "scout"}, {"agent": "vigil", "mine": "true"}
    for given in ({}, all_):
        assert (await una.http.put(pause, params=given)).status_code == 403
    assert (await una.http.put(pause, params={"mine": "true"})).status_code == 422
    set_ = await una.http.put(pause, params=own)
    assert set_.json()["paused"]["by"] == "una"
    body = {"name": "news", "prompt": "What is new?", "interval_s": 3600}
    row = (await una.http.post("/api/cron", json=body)).json()["id"]
    for one in (una, scout, uwe):
        await known(one)  # what was set before is known, too
        await one.exchange(ask(follow_up("tea", 60, "Tea!", keep=True)))
    await world.advance(60)
    await scout.talk.until(lambda: scout.followed_up == ["Tea!"])
    await uwe.talk.until(lambda: uwe.followed_up == ["Tea!"])
    assert una.followed_up == []
    await una.exchange("still there?")
    assert una.talk.texts[-1] == "re: still there?"
    slots = (await una.http.get("/api/slots", params={"row": row})).json()["slots"]
    assert [one["reason"] for one in slots] == ["what is done unasked was paused"]
    (shown,) = (await una.http.get("/api/status")).json()["paused_agents"]
    assert (shown["agent"], shown["user"]) == ("vigil", "una")
    assert (await uwe.http.get("/api/status")).json()["paused_agents"] == []
    await una.http.delete(pause, params=own)
    await said(una)

    assert (await root.put(pause, params=all_)).status_code == 200
    await known(scout)
    await scout.exchange(ask(follow_up("cake", 60, "Cake!", keep=True)))
    await world.advance(60)
    assert scout.followed_up == ["Tea!"]
    assert (await scout.http.delete(pause, params=all_)).status_code == 403
    await root.delete(pause, params=all_)
    await scout.talk.until(lambda: scout.followed_up == ["Tea!", "Cake!"])
    assert (await una.http.delete(f"/api/cron/{row}")).status_code == 200


async def test_a_task_waits_for_the_end_of_its_owners_pause(world: World) -> None:
    gil = await world.person("gil:vigil:main", has_socket=False)
    hal = await world.person("hal:vigil:main", has_socket=False)
    await known(gil, pause="on")
    made = []
    for person in (gil, hal):
        answer = await person.http.post("/api/tasks", json={"title": "Sum up", "status": "ready"})
        assert answer.status_code == 201, answer.text
        made.append(f"/api/tasks/{answer.json()['id']}")
    for person, path in zip((gil, hal), made, strict=True):
        if (await person.http.get(path)).json()["status"] == "pending_approval":
            await person.http.patch(path, json={"status": "ready"})
    await hal.talk.until(lambda: hal.talk.texts)  # told at home how it ended
    assert (await gil.http.get(made[0])).json()["status"] == "ready"
    await put(gil, pause=None)
    await gil.talk.until(lambda: "Sum up" in gil.talk.texts[-1])
    await world.at_rest()


# ---------------------------------------------------------------- by telling the agent


def told_of(person: Person) -> str:
    return told_in(person.talk)


def told_in(talk: Talk) -> str:
    """Return the newest result of a tool in a conversation."""
    rows = [row for turn in talk.turns for row in turn.rows]
    blocks = [block for row in rows for block in row.blocks]
    return [block.content for block in blocks if isinstance(block, ToolResultBlock)][-1]


async def test_the_agent_sets_what_the_person_says(world: World) -> None:
    ida = await world.person("ida:vigil:t1", has_socket=False)
    wanted = {"timezone": "Asia/Tokyo", "quiet_hours": "22:00-07:00", "pause": "on"}
    await ida.exchange(ask(("change_settings", wanted)))
    assert told_of(ida) == (
        "pause: on (before: none)\nquiet_hours: 22:00-07:00 (before: none)\n"
        "timezone: Asia/Tokyo (before: UTC)\nThis holds from now on, in all conversations."
    )
    found = (await ida.http.get(PATH)).json()
    assert {name: found[name] for name in wanted} == wanted
    assert found["changed_by"] == "ida:vigil:t1"
    await ida.exchange(ask(("change_settings", wanted)))
    assert told_of(ida) == "It is so already."
    await ida.exchange(ask(("change_settings", {"pause": "", "reset": ["timezone"]})))
    found = (await ida.http.get(PATH)).json()
    assert (found["pause"], found["timezone"], found["own"]) == (
        "",
        "UTC",
        ["quiet_hours", "pause"],
    )
    assert (await (await world.person("jim:vigil:t1")).http.get(PATH)).json()["own"] == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"timezone": "Mars/Base"}, "timezone"),
        ({"quiet_hours": "at night"}, "quiet_hours"),
        ({"digest_at": "25:00"}, "digest_at"),
        ({"language": "German!"}, "language"),
        ({"channel": "pigeon"}, "channel: must be one of socket"),
        ({"pause": "until Monday"}, "pause: 'until Monday': expected an instant"),
        ({"pause": "2020-01-01"}, "pause: '2020-01-01' is over already"),
        ({"pause": "9999-12-31T23:59-14:00"}, "pause"),
        ({"reset": ["home_thread"]}, "reset"),
        ({"reset": ["pause"], "pause": "on"}, "reset: pause is given, too"),
        ({"user": "ann"}, "user"),
        ({}, "give at least one of timezone"),
    ],
)
async def test_what_cannot_be_meant_is_refused_by_name(
    world: World, arguments: dict[str, Any], expected: str
) -> None:
    kim = await world.person("kim:vigil:t1", has_socket=False)
    await kim.exchange(ask(("change_settings", arguments)))
    assert expected in told_of(kim)
    found = (await kim.http.get(PATH)).json()
    assert found["revision"] == 0
    if len(arguments) == 1 and not {"reset", "user"} & set(arguments):
        (field,) = arguments
        assert_problem(await kim.http.patch(PATH, json=arguments), 422, field)


async def test_only_the_persons_own_words_set_anything(world: World) -> None:
    """ADR 19: not what comes by itself, even if they ordered it, nor what outside content had a
    part in; and no member sets anything for a team."""
    leo = await world.person("leo:vigil:t1", has_socket=False)
    behave = world.agent.behave

    def obey(request: ModelRequest) -> ModelAnswer:
        if request.rows[-1].source == "tool":
            return say("done")
        return answer(call("change_settings", quiet_hours="00:00-23:59"))

    await leo.exchange(ask(follow_up("later", 60, keep=True)))
    world.agent.behave = obey
    await world.advance(60)
    assert told_of(leo).startswith(ONLY_THE_PERSON)
    await leo.talk.outside("Read this.")
    await leo.exchange("Do it.")
    assert told_of(leo).startswith(ONLY_THE_PERSON)
    assert (await leo.http.get(PATH)).json()["revision"] == 0
    posted = await leo.http.get(f"/api/approvals?session={leo.key}")
    assert posted.json()["approvals"] == []
    crew = world.talk("team:crew:t1")
    answered = await (await world.person("kim:vigil:t1", has_socket=False)).http.post(
        f"/api/sessions/{crew.key}/messages", json={"text": "Do it."}
    )
    assert answered.status_code == 202, answered.text
    await crew.ended(answered.json()["seq"])
    world.agent.behave = behave
    assert NO_TEAM in told_in(crew)


# ---------------------------------------------------------------- rows of whoever moves


async def row_of(ann: Person, name: str, **wanted: Any) -> dict[str, Any]:
    body = {"name": name, "prompt": "Look", "cron": "0 9 * * *"} | wanted
    answer = await ann.http.post(CRON, json={k: v for k, v in body.items() if v is not None})
    assert answer.status_code == 201, answer.text
    row: dict[str, Any] = answer.json()
    return row


async def moved(ann: Person, id_: str, zone: str) -> dict[str, Any]:
    """Wait until a row goes by a zone."""
    async with asyncio.timeout(PATIENCE_S):
        pause_s = pauses()
        while True:
            row: dict[str, Any] = (await ann.http.get(f"{CRON}/{id_}")).json()
            if row["zone"] == zone:
                return row
            await asyncio.sleep(next(pause_s))


def hour_of(row: dict[str, Any]) -> int:
    return datetime.fromisoformat(row["next_at"][0]).astimezone(UTC).hour


async def test_a_row_without_a_zone_moves_with_its_owner_and_that_is_told_once(
    world: World,
) -> None:
    mia = await world.person("mia:vigil:main", has_socket=False)
    assert (await put(mia, timezone="Europe/Berlin"))["told"] == ""
    free = await row_of(mia, "free")
    year = world.clock.now().year + 1
    once = await row_of(mia, "once", cron=None, at=f"{year}-01-15T09:00")
    bound = await row_of(mia, "bound", zone="Europe/Berlin")
    await row_of(mia, "hourly", cron=None, interval_s=3600)
    assert (free["zone"], free["has_owners_zone"]) == ("Europe/Berlin", True)
    assert (bound["has_owners_zone"], hour_of(once)) == (False, 8)
    assert (await put(mia, timezone="Asia/Tokyo"))["told"] == (
        "Of the timetable these go by Asia/Tokyo from now on: 'free', 'once'. "
        "These were made with Europe/Berlin and stay there: 'bound'."
    )
    assert (await put(mia, timezone="Asia/Tokyo"))["told"] == ""
    shown = await moved(mia, free["id"], "Asia/Tokyo")
    assert (hour_of(shown), shown["schedule"]["zone"]) == (0, "Asia/Tokyo")
    assert shown["history"][-1]["why"] == "the time zone of its owner is Asia/Tokyo now"
    assert hour_of(await moved(mia, once["id"], "Asia/Tokyo")) == 0
    assert (await mia.http.get(f"{CRON}/{bound['id']}")).json()["revision"] == bound["revision"]

    back = await mia.http.patch(f"{CRON}/{bound['id']}", json={"zone": ""})
    assert (back.json()["zone"], back.json()["has_owners_zone"]) == ("Asia/Tokyo", True)
    fixed = await mia.http.patch(f"{CRON}/{free['id']}", json={"zone": "Asia/Tokyo"})
    assert not fixed.json()["has_owners_zone"]
    assert "'bound', 'once'" in (await put(mia, timezone="America/Havana"))["told"]
    assert hour_of(await moved(mia, bound["id"], "America/Havana")) in (13, 14)
    assert (await mia.http.get(f"{CRON}/{free['id']}")).json()["zone"] == "Asia/Tokyo"
    of_system = (await mia.http.get(CRON, params={"all": "true"})).json()["rows"]
    for row in of_system:
        if row["made_by"] == "system":
            await moved(mia, row["id"], "America/Havana")


async def test_who_moves_by_telling_the_agent_is_told_there(world: World) -> None:
    noa = await world.person("noa:vigil:main", has_socket=False)
    wanted = {"action": "create", "name": "nine", "prompt": "Look", "cron": "0 9 * * *"}
    await noa.exchange(ask(("cron", wanted)))
    (row,) = (await noa.http.get(CRON)).json()["rows"]
    assert row["has_owners_zone"]
    await noa.exchange(ask(("change_settings", {"timezone": "Asia/Tokyo"})))
    told = "Of the timetable these go by Asia/Tokyo from now on: 'nine'."
    assert told in told_of(noa)
    assert hour_of(await moved(noa, row["id"], "Asia/Tokyo")) == 0
