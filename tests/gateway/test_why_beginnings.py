"""GET /api/why/{id}: an id is found by its beginning (SPEC D-3, P-2)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from services.gateway.why import reader, search
from tests.gateway.test_gateway_why import ANN, EFFECT, START, S, followed_up, planned, store, why
from tests.support.console import signed_in
from tests.support.gateway import Gate, assert_problem
from tests.support.why import Log
from vigil.contracts import (
    Control,
    ControlPayload,
    DeadLetter,
    Memory,
    MemorySaved,
    Start,
    State,
    encode,
    short_name,
)
from vigil.subjects import SessionKey


async def test_the_beginning_of_an_id_is_enough(gate: Gate) -> None:
    """P-2: of what stands in records, in subjects, on the board, in memory and among dead letters;
    the whole one is told, as by itself.
    """
    await followed_up(gate)
    letter = DeadLetter(
        id="delivery-SESSIONS-4",
        service="delivery",
        stream="SESSIONS",
        seq=4,
        cause="refused",
        subject="session.vigil.ann.t1.turn",
        data=b"{}",
        at=datetime.now(UTC),
        session_key=ANN,
    )
    await gate.admin.publish("dead.delivery.vigil.ann.t1", encode(letter))
    saved = MemorySaved(
        id="r1",
        agent="vigil",
        owner="ann",
        at=START,
        by="user:ann",
        memory=Memory(id="c" * 32, content="tea is green", created_at=START),
    )
    await gate.admin.publish("memory.vigil.ann.save", encode(saved))
    ann, bob = await gate.person("ann"), await gate.person("bob")
    goal = (await ann.post("/api/goals", json={"description": "Drink tea"})).json()["id"]
    worker = SessionKey("ann", "vigil", f"_worker-{'d' * 32}")
    start = Control(
        id="start-d",
        session_key=str(worker),
        created_at=START,
        payload=ControlPayload(
            op="start", start=Start(prompt="boil water", parent=ANN, parent_turn=2, call_id="c")
        ),
    )
    await gate.admin.publish(worker.in_event("control"), encode(start))
    wholes = {
        "eeee": EFFECT,
        "aaaaaaaa": S,
        "time": "timer-3",
        "cccc": "c" * 32,
        goal[:8]: goal,
        short_name(goal, "g"): goal,
        "deliv": "delivery-SESSIONS-4",
        "ddddd": "d" * 32,
    }
    for beginning, whole in wholes.items():
        answer = await ann.get(f"/api/why/{beginning}")
        assert answer.status_code == 200, (beginning, answer.text)
        found = answer.json()
        assert found["id"] == whole
        assert found == await why(ann, whole)
        assert_problem(await bob.get(f"/api/why/{beginning}"), 404)
        assert_problem(await ann.get(f"/api/why/{whole[:3]}"), 404)


async def test_what_begins_several_ids_names_them(gate: Gate) -> None:
    """P-2: and an id that is whole is meant, though others begin so."""
    await followed_up(gate)
    log = Log()
    for timer_id in ("followup-1", "followup-12"):
        planned(log, timer_id, f"plan-{timer_id}")
    await store(gate, log, "ann:vigil:t2")
    ann = await gate.person("ann")
    problem = assert_problem(await ann.get("/api/why/follow"), 422)
    assert problem["detail"] == "id 'follow' is the beginning of several: followup-1, followup-12"
    assert problem["field"] == "id"
    assert (await why(ann, "followup-1"))["kind"] == "timer"
    for n in range(6):
        await gate.turn("ann:vigil:other", State(turns=n))
    log = Log()
    for n in range(6):
        log.said_by_person("more", f"again-{n}")
    await store(gate, log, "ann:vigil:t3")
    problem = assert_problem(await ann.get("/api/why/again"), 422)
    assert problem["detail"].count("again-") == 5
    assert problem["detail"].endswith(", …")


async def test_a_beginning_is_looked_for_within_the_bounds_of_a_whole_id(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-6: what is older isn't met, nor found."""
    await followed_up(gate)
    ann = await gate.person("ann")
    goal = (await ann.post("/api/goals", json={"description": "Drink tea"})).json()["id"]
    for _ in range(16):
        await ann.post("/api/goals", json={"description": "Drink coffee"})
    for n in range(30):
        await gate.turn("ann:vigil:other", State(turns=n))
    monkeypatch.setattr(reader, "WINDOW", 4)
    monkeypatch.setattr(search, "SCAN_RECORDS_MAX", 6)
    assert (await ann.get(f"/api/why/{goal}")).status_code == 200
    for beginning in (EFFECT[:8], goal[:12]):
        assert_problem(await ann.get(f"/api/why/{beginning}"), 404)
    assert (await ann.get(f"/api/why/{EFFECT[:8]}", params={"session": ANN})).status_code == 200


async def test_a_row_that_never_ran_is_known(gate: Gate) -> None:
    ann = await gate.person("ann")
    body = {"name": "briefing", "prompt": "What is new?", "interval_s": 3600}
    row = (await ann.post("/api/cron", json=body)).json()["id"]
    for id_ in (row, row[:8]):
        problem = assert_problem(await ann.get(f"/api/why/{id_}"), 404)
        assert problem["detail"] == "no run of the row 'briefing' is recorded"


async def test_the_console_tells_times_on_the_readers_clocks(gate: Gate) -> None:
    """P-2: beside each step stands when it was; what it tells of went by another clock, UTC."""
    await followed_up(gate)
    ann = await gate.person("ann")
    assert (await ann.patch("/api/person", json={"timezone": "Asia/Tokyo"})).is_success
    shown = (await (await signed_in(gate, "ann")).page(f"/why?id={EFFECT}")).text
    assert "for 2031-03-03 18:00:00 Asia/Tokyo" in shown
    assert "UTC" not in shown
