"""Every kind of signal, from its real cause through every service (SPEC C-4)."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from services.cortex.model import ModelAnswer, ModelError, ModelRequest
from services.scheduler.timetable.kinds.autonomy import row_of
from tests.support import signals
from tests.support.agent import ask, follow_up, tell
from tests.support.channels import channel_of
from tests.support.goal_records import action_of
from tests.support.pauses import pauses
from tests.support.receiver import OK, raw, running_receiver, status
from tests.support.scripted_model import say
from tests.support.world import Person, StoppedClock, World, running_world
from vigil.actions.log import ended
from vigil.board.kept import ROWS, KeptBoard
from vigil.board.kinds.action import ACTIONS
from vigil.contracts import Change, Note, Signal, State, Turn, encode
from vigil.minds import mind_of
from vigil.signals.kinds import KINDS
from vigil.subjects import Scope

WINDOW = 20_000
"""Tokens: room for some twenty messages of a kilobyte or three."""
DUE = ("cron.", "autonomy.", "bulletin.", "fact.")
UNLUCKY = ("gil", "guy", "gus")
NOBODY = "nobody"
"""Whose sessions make the scheduler look at a clock that the test moved."""


async def test_every_kind_is_told_once_for_its_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-4, S-6, S-7, S-8, D-2, C-9: each cause of the list happens, and is told exactly once."""
    async with (
        running_receiver(OK, status(410, "Gone")) as receiver,
        running_receiver(raw(b"")) as careless,
    ):
        channels = {
            "ops": channel_of(receiver),
            "once": channel_of(careless, is_idempotent=False),
        }
        model = {"retry_base_s": 5.0, "context_tokens": WINDOW, "fallback": "small"}
        async with running_world(
            tmp_path,
            monkeypatch,
            has_hands=True,
            channels=channels,
            model=model,
            budget={"daily_tokens": 10},
        ) as world:
            person = await world.person(has_socket=False)
            await person.exchange("hello")
            await _timers(world, person)
            await _gates(world, person)
            await _too_late(world, person)
            for channel in ("ops", "ops", "once"):
                await person.exchange(ask(tell("look", channel)))
            await _models(world, person)
            await _circuits(world)
            await world.admin.publish("event.hal.ci", b"{}")  # by a program, and no event
            await _memories(world, person)
            await _workers(world, person)
            await _branches(world, person)
            await _jobs(world, person)
            await _grants(world)
            await _tasks(world)
            await _pursuits(world)
            await _compaction(world)
            await _timetable(world)
            await _minds(world)
            await world.admin.publish("session.vigil.bob.t1.in.said.user", b"{")
            made = await _all_told(world)
            assert signals.wrong(await signals.expected(world.admin), made) == []
            assert signals.ids_by_source(made) == await signals.expected(world.admin)
    made = [one for one in made if one.owner != NOBODY]
    assert {one.kind for one in made} == set(KINDS)
    made = [one for one in made if one.owner != "eve" or one.kind.startswith("task.")]
    made = [one for one in made if one.owner != "fay" or one.kind.startswith(DUE)]
    made = [one for one in made if one.owner not in (*UNLUCKY, "hal")]
    counts = Counter(one.kind for one in made)
    once = (
        "timer.voided", "timer.cancelled", "message.delivered", "message.blocked",
        "message.dropped", "message.failed", "message.ambiguous", "budget.exhausted",
        "budget.warned", "error.retry", "error.event", "memory.merged", "memory.replaced",
        "memory.forgotten", "worker.completed",
        "worker.failed", "branch.completed", "branch.failed", "job.completed", "job.failed",
        "job.cancelled", "reader.completed", "reader.failed",
        "cron.completed", "cron.failed", "autonomy.started", "autonomy.finished",
        "grant.used", "task.proposed", "task.shelved", "task.completed", "task.failed",
        "circuit.opened", "circuit.closed",
    )  # fmt: skip
    assert {kind: counts[kind] for kind in once} == dict.fromkeys(once, 1)
    assert (counts["session.started"], counts["timer.fired"]) == (5, 3), "one is home"
    assert counts["memory.saved"] == 6, "one of them is the note of the job"
    twice = (
        "worker.started", "worker.status", "branch.started", "reader.started", "approval.requested",
        "model.fallback",
    )  # fmt: skip
    assert {kind: counts[kind] for kind in (*twice, "approval.decided")} == dict.fromkeys(
        (*twice, "approval.decided"), 2
    )
    assert counts["job.started"] == 3
    made = [one for one in made if one.owner not in ("cid", "dan", "eve", "fay")]
    counts = Counter(one.kind for one in made)
    assert counts["timer.scheduled"] == 6
    assert counts["error.model"] == 2, "what nobody could pay waited"
    at_home = sum(one.session_key == "ann:vigil:main" for one in made if one.kind == "message.sent")
    assert at_home == 4, "the end of each job, and of the budget"
    elsewhere = at_home + 1
    assert counts["turn.committed"] == len(person.talk.turns) + elsewhere
    said = len(person.talk.said) + elsewhere
    assert counts["message.sent"] == said, "bob is told that it was lost"
    _tell_what_why_takes(made)


async def _minds(world: World) -> None:
    """A look that decided and one that failed; how they come about tries test_mind."""
    key = mind_of(Scope("vigil", "hal"))
    for ordinal, code in enumerate(("look_decided", "look_failed"), start=1):
        turn = Turn(
            id=code,
            session_key=str(key),
            ordinal=ordinal,
            event=None,
            outcome="silent",
            state=State(turns=ordinal),
            created_at=world.clock.now(),
            notes=(Note(code=code, text="it is tried"),),
        )
        await world.admin.publish(key.turn_for(""), encode(turn))


async def _timers(world: World, person: Person) -> None:
    await person.exchange(ask(follow_up("voided", 30, "hi")))
    await person.exchange("never mind")
    await person.exchange(ask(follow_up("cancelled", 30, "hi")))
    answer = await person.http.delete(f"/api/sessions/{person.key}/timers/cancelled")
    assert answer.status_code == 202
    await world.at_rest()


async def _gates(world: World, person: Person) -> None:
    """Two come due together: the second is refused by the cooldown."""
    await person.exchange(ask(follow_up("first", 30, "one"), follow_up("second", 31, "two")))
    await world.advance(32)


async def _too_late(world: World, person: Person) -> None:
    """A follow-up that was decided and not yet said when the person speaks."""
    await person.exchange(ask(follow_up("late", 60, "three")))
    await world.stack.stop("delivery")
    await world.advance(61, without="delivery")
    await person.say("I spoke first")
    await world.stack.start("delivery")
    await person.talk.until(lambda: person.talk.receipts)
    await world.at_rest()


async def _models(world: World, person: Person) -> None:
    agent, behave = world.agent, world.agent.behave
    errors = [
        ModelError("529", is_retryable=True),
        ModelError("401", is_retryable=False),
        ModelError("of the fallback, too", is_retryable=False),
    ]

    def fail(request: ModelRequest) -> ModelAnswer:
        raise errors.pop(0)

    agent.behave = fail
    seq = await person.say("are you there?")
    await person.talk.until(lambda: "model_retry" in person.talk.notes)
    await world.advance(6)
    await person.talk.ended(seq)
    agent.behave = behave
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patch:
        patch.setattr(agent, "is_free", False)
        seq = await person.say("and what would that cost?")
        await person.talk.until(lambda: "budget_waits" in person.talk.notes)
        await person.talk.control("stop")
        await person.talk.ended(seq)
    await person.exchange(ask(follow_up("kept", 40, "drink", keep=True)))
    await world.advance(41)


async def _circuits(world: World) -> None:
    """Three messages in a row that the model doesn't answer; then it does."""
    agent, behave = world.agent, world.agent.behave

    def fail(request: ModelRequest) -> ModelAnswer:
        raise ModelError("529", is_retryable=True)

    agent.behave = fail
    people = [await world.person(f"{user}:vigil:t1", has_socket=False) for user in UNLUCKY]
    for one in people:
        await one.say("are you there?")
        await one.talk.until(lambda one=one: "model_retry" in one.talk.notes)
    agent.behave = behave
    for _ in range(2):
        await world.advance(31)
    for one in people:
        await one.talk.until(lambda one=one: one.talk.said)


async def _memories(world: World, person: Person) -> None:
    """One by a tool, the same by hand, three notes that become a summary, one forgotten."""
    await person.exchange(ask(("memory_save", {"content": "Ann has a cat"})))
    again = {"content": "Ann has a cat.", "userId": "ann"}
    assert (await person.http.post("/api/memories", json=again)).status_code == 201
    volatile = {"type": "observation", "stability": "volatile"}
    for n in range(3):
        answer = await person.http.post(
            "/api/memories", json={"content": f"note {n}", "userId": "ann"} | volatile
        )
        assert answer.status_code == 201, answer.text
        kept: str = answer.json()["id"]
    await world.advance(8 * 86_400)
    done = (await person.http.post("/api/maintenance")).json()
    assert (done["pruned"], done["merged"]) == (0, 1)
    assert (await person.http.delete(f"/api/memories/{kept}")).status_code == 200


async def _workers(world: World, person: Person) -> None:
    """One asks the person and is done with the answer; another is stopped while it waits."""
    question = ask(("ask_user", {"question": "which one?"}))
    spawn = ask(("spawn_worker", {"task": question}))
    await person.exchange(spawn)
    (first,) = await _waiting(person)
    answer = {"verdict": "answer", "text": "both", "digest": first["digest"]}
    done = await person.http.patch(f"/api/approvals/{first['id']}", json=answer)
    assert done.status_code == 202, done.text
    await _ended(world, person, "worker.completed")
    await person.exchange(spawn)
    (second,) = await _waiting(person)
    stopped = await person.http.post(f"/api/sessions/{second['session_key']}/stop")
    assert stopped.status_code == 202, stopped.text
    await _ended(world, person, "worker.failed")


async def _waiting(person: Person) -> list[dict[str, Any]]:
    """Wait until the person is asked for something."""
    async with asyncio.timeout(signals.WAIT_S):
        pause_s = pauses()
        while True:
            found: list[dict[str, Any]] = (await person.http.get("/api/approvals")).json()[
                "approvals"
            ]
            if found:
                return found
            await asyncio.sleep(next(pause_s))


async def _ended(world: World, person: Person, kind: str) -> None:
    async with asyncio.timeout(signals.WAIT_S):
        pause_s = pauses()
        while kind not in {one.kind for one in await signals.settled(world.admin)}:
            await asyncio.sleep(next(pause_s))
    await world.at_rest()


async def _branches(world: World, person: Person) -> None:
    """A thought that comes to something, and one for which no model answers."""
    agent, behave = world.agent, world.agent.behave

    def fail(request: ModelRequest) -> ModelAnswer | Awaitable[ModelAnswer]:
        if request.rows[-1].source == "task":
            raise ModelError("401", is_retryable=False)
        return behave(request)

    await person.exchange(ask(("branch", {"prompt": "what if"})))
    await person.exchange(ask(("research", {"task": "what there is"})))
    await _ended(world, person, "reader.completed")
    agent.behave = fail
    await person.exchange(ask(("branch", {"prompt": "and what then"})))
    await person.exchange(ask(("research", {"task": "what there isn't"})))
    await _ended(world, person, "reader.failed")
    agent.behave = behave


async def _jobs(world: World, person: Person) -> None:
    """One whose only step is unknown, one that is never planned, one that nobody waits for."""
    agent, behave = world.agent, world.agent.behave
    thinks = asyncio.Event()

    async def plan(request: ModelRequest) -> ModelAnswer:
        goal = agent.text_of(request)
        if "think" in goal:
            thinks.set()
            await asyncio.sleep(signals.WAIT_S)
        steps = [{"tool": "nothing", "input": {}}]
        is_known = "tidy" in goal
        return say(json.dumps({"steps": steps, "reasoning": "x"}) if is_known else "I can't")

    agent.behave = plan
    await _job(person, "tidy up", "succeeded")
    await _job(person, "do what can't be", "failed")
    answer = await person.http.post("/api/jobs", json={"goal": "think", "userId": "ann"})
    await asyncio.wait_for(thinks.wait(), signals.WAIT_S)
    id_ = answer.json()["id"]
    await person.http.patch(f"/api/jobs/{id_}", json={"status": "cancelled"})
    await _ended(world, person, "job.cancelled")
    agent.behave = behave


async def _job(person: Person, goal: str, end: str) -> None:
    answer = await person.http.post("/api/jobs", json={"goal": goal, "userId": "ann"})
    assert answer.status_code == 202, answer.text
    async with asyncio.timeout(signals.WAIT_S):
        pause_s = pauses()
        while True:
            job = (await person.http.get(f"/api/jobs/{answer.json()['id']}")).json()
            if job["status"] == end:
                return
            await asyncio.sleep(next(pause_s))


async def _grants(world: World) -> None:
    """A call that would ask, since an event came in, and that the person allowed beforehand."""
    dan = await world.person("dan:vigil:t1", has_socket=False)
    site = {"kind": "url", "host": "example.invalid", "port": 443}
    body = {"tool": "http_get", "constraints": [site], "holds_for_outside": True}
    assert (await dan.http.post("/api/grants", json=body)).status_code == 201
    event = {
        "specversion": "1.0", "id": "1", "source": "ci", "type": "build", "subject": "dan:vigil:t1",
        "data": "red",
    }  # fmt: skip
    cloud = {"content-type": "application/cloudevents+json"}
    answer = await dan.http.post("/api/events", json=event, headers=cloud)
    assert answer.status_code == 202, answer.text
    await dan.talk.until(lambda: dan.talk.said)
    wish = ask(("http_get", {"url": "https://example.invalid/news"}))
    await dan.exchange(wish.replace("news", "new\\u0073"))  # word for word it would need no grant


async def _tasks(world: World) -> None:
    """One that the agent made is done, kept for later, and comes to nothing when tried again."""
    eve, behave = await world.person("eve:vigil:t1", has_socket=False), world.agent.behave
    await eve.exchange(ask(("task_create", {"title": "Tidy up"})))
    ((task,),) = [(await eve.http.get("/api/tasks")).json()["tasks"]]

    async def to(status: str, end: str) -> None:
        path = f"/api/tasks/{task['id']}"
        assert (await eve.http.patch(path, json={"status": status})).status_code == 200
        async with asyncio.timeout(signals.WAIT_S):
            pause_s = pauses()
            while (await eve.http.get(path)).json()["status"] != end:
                await asyncio.sleep(next(pause_s))

    def fail(request: ModelRequest) -> ModelAnswer | Awaitable[ModelAnswer]:
        if request.rows[-1].source == "task":
            raise ModelError("401", is_retryable=False)
        return behave(request)

    await to("ready", "done")
    await to("backlog", "backlog")
    world.agent.behave = fail
    await to("ready", "failed")
    world.agent.behave = behave
    await world.at_rest()


async def _pursuits(world: World) -> None:
    """Goals that go each way, a preference, and something that was done without an order."""
    eve = (await world.person("eve:vigil:t1", has_socket=False)).http
    goal = {"description": "Ship it", "deadline_at": "2100-01-01T00:00:00Z"}
    for statuses in (("paused", "completed", "archived"), ("failed",)):
        path = f"/api/goals/{(await eve.post('/api/goals', json=goal)).json()['id']}"
        for to in statuses:
            assert (await eve.patch(path, json={"status": to})).status_code == 200
    liked = {"category": "communication", "key": "answers", "value": "short"}
    await eve.post("/api/preferences", json=liked)
    said = (await eve.post("/api/preferences", json=liked | {"is_negative": True})).json()
    assert (await eve.delete(f"/api/preferences/{said['id']}")).status_code == 200
    board, at = KeptBoard(world.admin, ACTIONS), datetime.now(UTC)
    action, by = action_of(owner="eve", created_at=at), Change(by="vigil")
    done = await board.create(lambda _: action, Scope("vigil", "eve"), by, at)
    await board.replace(done.number, ended(done.entity, "success", at), by, at)
    judged = await eve.patch(f"/api/actions/{action.id}", json={"is_good": True})
    assert judged.status_code == 200, judged.text


async def _compaction(world: World) -> None:
    """A conversation that grows until its oldest part gives way."""
    cid, behave = await world.person("cid:vigil:t1", has_socket=False), world.agent.behave

    def sum_up(request: ModelRequest) -> ModelAnswer | Awaitable[ModelAnswer]:
        is_answer = request.purpose == "answer"
        return behave(request) if is_answer else say("<summary>Many x.</summary>")

    world.agent.behave = sum_up
    for number in range(60):
        await cid.exchange(f"{number}: {'x' * 3000}")
        if any(turn.outcome == "compacted" for turn in cid.talk.turns):
            return
    raise AssertionError([turn.outcome for turn in cid.talk.turns])


async def _timetable(world: World) -> None:
    """A job that runs and tells a fact, one that fails, one that is missed, and a cycle that finds
    nothing new."""
    assert isinstance(world.clock, StoppedClock)
    fay, behave = await world.person("fay:vigil:t1", has_socket=False), world.agent.behave

    def fail(request: ModelRequest) -> ModelAnswer | Awaitable[ModelAnswer]:
        if "levitate" in world.agent.text_of(request):
            raise ModelError("401", is_retryable=False)
        return say('{"up": "yes"}') if request.purpose == "facts" else behave(request)

    world.agent.behave = fail
    for name in ("look", "levitate"):
        body = {"name": name, "prompt": name, "interval_s": 3600, "runs_once": True}
        body |= {"facts": {"up": "yes_no"}}
        assert (await fay.http.post("/api/cron", json=body)).status_code == 201
    await _ended(world, fay, "cron.failed")
    await _ended(world, fay, "cron.completed")
    world.agent.behave = behave
    at = (world.clock.now() + timedelta(seconds=60)).isoformat()
    late = {"name": "late", "prompt": "late", "at": at, "misfire": "skip"}
    assert (await fay.http.post("/api/cron", json=late)).status_code == 201
    world.clock.move(3600)
    await _ended(world, fay, "cron.missed")
    whose, now = Scope("vigil", "fay"), world.clock.now()
    row = row_of(world.stack.settings.config, whose, "UTC", now)
    row = replace(row, is_enabled=True)
    await KeptBoard(world.admin, ROWS).replace(0, row, Change(by="test"), now)
    world.clock.move(90)
    await _ended(world, fay, "autonomy.finished")
    async with asyncio.timeout(signals.WAIT_S):
        while "autonomy.skipped" not in {one.kind for one in await signals.settled(world.admin)}:
            world.clock.move(1800)
            await asyncio.sleep(0.2)


async def _all_told(world: World) -> list[Signal]:
    """Wait until every kind was told, and everything that is stored."""
    async with asyncio.timeout(signals.WAIT_S):
        pause_s = pauses()
        while True:
            made = await signals.settled(world.admin)
            if {one.kind for one in made} == set(KINDS):
                return await signals.settled(world.admin)
            await asyncio.sleep(next(pause_s))


def _tell_what_why_takes(made: list[Signal]) -> None:
    """The subject of each is a timer, a send or an event; the words are for people."""
    about = {one.kind: one.subject for one in made}
    assert about["timer.voided"] == "voided"
    assert about["timer.cancelled"] == "cancelled"
    assert about["message.blocked"] == "second"
    said = {one.subject for one in made if one.kind == "message.sent"}
    assert about["message.delivered"] in said
    assert about["message.dropped"] not in said
    assert all(one.text and one.text[0].isupper() for one in made)
    made = [one for one in made if not one.kind.startswith("circuit.")]  # nobody's
    assert all(one.owner in ("ann", "bob") and one.agent == "vigil" for one in made)
