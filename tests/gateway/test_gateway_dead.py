"""Dead letters over HTTP: who sees them, what comes of them, and what a crash leaves."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from services.gateway.work import letters
from services.gateway.work.letters import Ask, Copy, Letter, Letters, Never
from tests.support.channels import closed, died, orders, running_channel
from tests.support.delivery import until
from tests.support.gateway import Gate, assert_problem
from tests.support.receiver import OK, status
from tests.support.stack import running_stack
from vigil import contracts
from vigil.bus.bus import Bus
from vigil.contracts import (
    Control,
    ControlPayload,
    DeadLetter,
    DeadLetterEnd,
    Envelope,
    External,
    ExternalPayload,
    UserMessage,
    UserMessagePayload,
    decode_event,
    encode,
)
from vigil.marks import erasure
from vigil.subjects import SessionKey

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
ANN = SessionKey("ann", "vigil", "t1")
BEN = SessionKey("ben", "vigil", "t1")


def letter(id_: str, key: SessionKey = ANN, data: bytes = b"{", **changes: Any) -> DeadLetter:
    fields: dict[str, Any] = {
        "service": "cortex", "stream": key.stream, "subject": key.in_user, "seq": 9,
        "cause": "not JSON", "at": AT,
    } | changes  # fmt: skip
    return DeadLetter(id=id_, data=data, **fields)


async def bury(bus: Bus, record: DeadLetter, key: SessionKey = ANN) -> int:
    return (await bus.publish(key.dead(record.service), encode(record))).seq


def message(event_id: str = "e1", text: str = "hi", key: SessionKey = ANN) -> UserMessage:
    payload = UserMessagePayload(text=text)
    return UserMessage(id=event_id, session_key=str(key), created_at=AT, payload=payload)


def external(key: SessionKey = ANN) -> External:
    payload = ExternalPayload(source="hook:ci", content="red", origin_id="7")
    return External(id="x1", session_key=str(key), created_at=AT, payload=payload)


# ---------------------------------------------------------------- the fold


def test_a_letter_is_open_until_it_is_ended() -> None:
    """S-10: ended is final, also if the letter is stored once more under its id."""
    fold = Letters()
    one, two = letter("one"), letter("two")
    end = DeadLetterEnd(letter_id="one", action="requeued", by="ann", at=AT)
    again = DeadLetterEnd(letter_id="one", action="discarded", by="ben", at=AT)
    stored = [(ANN.dead("cortex"), one), (ANN.dead("cortex"), two), (ANN.dead("ended"), end),
              (ANN.dead("cortex"), one), (ANN.dead("ended"), again)]  # fmt: skip
    for seq, (subject, record) in enumerate(stored, start=1):
        fold.take(seq, subject, encode(record))
    assert [(one.seq, one.end) for one in fold.all()] == [(1, end), (2, None)]
    assert fold.end_seqs == {ANN: 5}
    assert fold.get("three") is None
    found, after = letters.page(fold.all(), only_open=True, service=None, after=0, limit=1)
    assert ([one.record.id for one in found], after) == (["two"], None)
    found, after = letters.page(fold.all(), only_open=False, service="cortex", after=0, limit=1)
    assert ([one.record.id for one in found], after) == (["one"], 1)
    assert letters.page(fold.all(), only_open=False, service="x", after=0, limit=9) == ([], None)


def test_only_the_wanted_bytes_are_kept() -> None:
    """The stream may hold megabytes of them."""
    fold = Letters("two")
    for seq, name in enumerate(("one", "two"), start=1):
        fold.take(seq, ANN.dead("cortex"), encode(letter(name, data=b"bytes")))
    assert [one.record.data for one in fold.all()] == [b"", b"bytes"]


def way_of(record: DeadLetter, key: SessionKey = ANN) -> Ask | Copy | Never:
    return letters.way_back(Letter(seq=1, key=key, record=record))


def test_how_each_kind_is_tried_again() -> None:
    """S-10: or why it can't be."""
    for service in ("delivery", "executor", "memory", "scheduler"):
        assert way_of(letter("l", service=service)) == Ask(service)
    copies = [way_of(letter("l", data=encode(event))) for event in (message(), external())]
    for copy, original in zip(copies, ("e1", "x1"), strict=True):
        assert isinstance(copy, Copy)
        assert copy.event.caused_by == original
        assert copy.event.id not in (original, "")
    assert copies[0] == way_of(letter("l", data=encode(message())))
    stop = Control(id="c", session_key=str(ANN), created_at=AT, payload=ControlPayload(op="stop"))
    for record, reason in (
        (letter("l"), "it can't be read"),
        (letter("l", data=encode(stop)), "a control event belongs to its moment"),
        (letter("l", data=encode(message(key=BEN))), "it says that it belongs to ben"),
        (letter("l", subject=ANN.turn), "a turn that can't be read"),
        (letter("l", data=b"x" * contracts.DEAD_LETTER_BYTES_MAX), "it is larger"),
        (letter("l", service="gateway"), "publish it again"),
    ):
        way = way_of(record)
        assert isinstance(way, Never)
        assert reason in way.reason


# ---------------------------------------------------------------- who sees what


async def test_a_person_sees_their_own_and_an_admin_everybodys(gate: Gate) -> None:
    """X-4"""
    await bury(gate.admin, letter("a1"))
    await bury(gate.admin, letter("b1", BEN, service="delivery", effect_id="e" * 32), BEN)
    ann, admin = await gate.person("ann"), await gate.person("root", is_admin=True)
    assert _ids(await ann.get("/api/dead")) == ["a1"]
    assert _ids(await admin.get("/api/dead")) == ["a1", "b1"]
    assert _ids(await admin.get("/api/dead?service=delivery")) == ["b1"]
    shown = (await ann.get("/api/dead/a1")).json()
    assert shown["letter"] == {
        "id": "a1", "seq": 1, "service": "cortex", "session_key": "ann:vigil:t1",
        "cause": "not JSON", "at": "2026-03-01T12:00:00Z", "stream": "SESSIONS",
        "source_seq": 9, "subject": "session.vigil.ann.t1.in.said.user",
    }  # fmt: skip
    assert shown["data"] == {"unreadable": "ew=="}
    for path in ("/api/dead/b1", "/api/dead/none"):
        assert_problem(await ann.get(path), 404)
        assert_problem(await ann.post(f"{path}/requeue"), 404)
        assert_problem(await ann.post(f"{path}/discard"), 404)
    assert_problem(await (await gate.http()).get("/api/dead"), 401)
    assert _ids(await admin.get("/api/dead")) == ["a1", "b1"]


def _ids(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [one["id"] for one in answer.json()["letters"]]


async def test_pages_and_bad_parameters(gate: Gate) -> None:
    """X-6"""
    for number in range(5):
        await bury(gate.admin, letter(f"l{number}"))
    await gate.admin.publish(ANN.dead("cortex"), b"{broken")
    ann = await gate.person("ann")
    first = (await ann.get("/api/dead?limit=2")).json()
    assert [one["id"] for one in first["letters"]] == ["l0", "l1"]
    rest = await ann.get(f"/api/dead?limit=100&after={first['next_after']}")
    assert _ids(rest) == ["l2", "l3", "l4"]
    assert rest.json()["next_after"] is None
    for query, field in (("limit=0", "limit"), ("after=x", "after"), ("open=x", "open")):
        assert_problem(await ann.get(f"/api/dead?{query}"), 422, field)
    assert_problem(await ann.get(f"/api/dead/{'x' * 300}"), 422, "id")


async def test_what_is_discarded_is_ended_once(gate: Gate) -> None:
    """S-10: also if two ask at once, and with other letters of the session."""
    await bury(gate.admin, letter("l0"))
    await bury(gate.admin, letter("l1"))
    ann = await gate.person("ann")
    asked = [ann.post(f"/api/dead/l{number % 2}/discard") for number in range(6)]
    answers = await asyncio.gather(*asked)
    assert sorted(a.status_code for a in answers) == [200, 200, 409, 409, 409, 409]
    done = next(a for a in answers if a.status_code == 200).json()
    assert done["letter"]["ended"]["action"] == "discarded"
    assert done["letter"]["ended"]["by"] == "ann"
    assert _ids(await ann.get("/api/dead")) == []
    assert _ids(await ann.get("/api/dead?open=false")) == ["l0", "l1"]
    problem = assert_problem(await ann.post("/api/dead/l0/requeue"), 409)
    assert "it was discarded by ann at" in problem["detail"]
    ends = await gate.admin.read("DEAD", ["dead.ended.>"])
    assert len(ends) == 2


async def test_nothing_is_written_of_a_person_who_is_being_erased(gate: Gate) -> None:
    """X-8: an end names its session, so an admin's must not come behind the sweep either."""
    await bury(gate.admin, letter("l1", data=encode(message())))
    ann, admin = await gate.person("ann"), await gate.person("root", is_admin=True)
    await erasure.begin(gate.admin, "ann", AT)

    async def is_refused() -> bool:
        return (await ann.get("/api/dead")).status_code == 403

    await until(is_refused, what="the gateway knows")
    assert_problem(await admin.post("/api/dead/l1/discard"), 403)
    assert_problem(await admin.post("/api/dead/l1/requeue"), 403)
    assert await gate.admin.read("DEAD", ["dead.ended.>"]) == []
    assert await gate.stored("ann:vigil:t1") == []


# ---------------------------------------------------------------- events that were given up


@pytest.mark.parametrize("event", [message(), external()])
async def test_an_event_comes_again_as_a_new_one(gate: Gate, event: Envelope) -> None:
    """S-10: a new id, caused by the old one; asked for at once by several, it comes once."""
    await bury(gate.admin, letter("l", data=encode(event)))
    ann = await gate.person("ann")
    answers = await asyncio.gather(*(ann.post("/api/dead/l/requeue") for _ in range(3)))
    assert sorted(a.status_code for a in answers) == [200, 409, 409]
    done = next(a for a in answers if a.status_code == 200).json()
    (stored,) = await gate.stored(str(ANN))
    copy = decode_event(stored.data)
    assert (copy.id, copy.caused_by) == (done["event_id"], event.id)
    assert copy.created_at > event.created_at
    assert done["letter"]["ended"]["action"] == "requeued"
    assert_problem(await ann.post("/api/dead/l/requeue"), 409)
    assert len(await gate.stored(str(ANN))) == 1


async def test_a_crash_before_the_end_leaves_no_second_copy(gate: Gate) -> None:
    """S-10: the work is done and the letter open: whoever asks again finds it done."""
    await bury(gate.admin, letter("l", data=encode(message())))
    ann = await gate.person("ann")
    assert (await ann.post("/api/dead/l/requeue")).status_code == 200
    (end,) = await gate.admin.read("DEAD", ["dead.ended.>"])
    await gate.admin.api("STREAM.MSG.DELETE.DEAD", {"seq": end.seq})
    assert (await ann.post("/api/dead/l/requeue")).status_code == 200
    assert len(await gate.stored(str(ANN))) == 1


async def test_what_cannot_come_again_says_why_and_stays_open(gate: Gate) -> None:
    """S-10"""
    await bury(gate.admin, letter("l"))
    await bury(gate.admin, letter("g", service="gateway"))
    ann = await gate.person("ann")
    for name in ("l", "g"):
        assert_problem(await ann.post(f"/api/dead/{name}/requeue"), 409)
    assert _ids(await ann.get("/api/dead")) == ["l", "g"]


async def test_without_the_service_that_gave_up_it_stays_open(gate: Gate) -> None:
    """S-10: 503, nobody answers."""
    await bury(gate.admin, letter("d", service="delivery", seq=1))
    await bury(gate.admin, letter("s", service="scheduler", seq=1))
    ann = await gate.person("ann")
    for name in ("d", "s"):
        assert_problem(await ann.post(f"/api/dead/{name}/requeue"), 503)
    assert _ids(await ann.get("/api/dead")) == ["d", "s"]


# ---------------------------------------------------------------- through the services


async def test_a_message_that_no_channel_took_is_requeued(tmp_path: Path) -> None:
    """S-10, D-2: seen, requeued, delivered; the second wish is refused."""
    services = ("delivery", "gateway")
    async with running_channel(tmp_path, status(410), OK, services=services) as (
        stack,
        receiver,
        talk,
    ):
        gate = Gate(stack, talk.bus, await stack.bus("operator"))
        await talk.user()
        send = talk.send(channel="ops")
        await talk.turn(send)
        (dead,) = await died(talk.bus)
        ann = await gate.person("ann")
        shown = (await ann.get(f"/api/dead/{dead.id}")).json()
        assert (shown["letter"]["effect_id"], shown["text"]) == (send.id, send.payload.text)
        assert (await ann.post(f"/api/dead/{dead.id}/requeue")).status_code == 200
        assert (await closed(talk.bus, talk.key, send.id, times=2)).outcome == "delivered"
        assert_problem(await ann.post(f"/api/dead/{dead.id}/requeue"), 409)
        assert [o.requeued_by for o in await orders(talk.bus, talk.key, send.id)] == [None, "ann"]
        assert len(receiver.requests) == 2
        kinds = [
            r["kind"] for r in (await ann.get(f"/api/sessions/{ANN}/timeline")).json()["records"]
        ]
        assert kinds == ["in.said.user", "turn", "out.said", "send", "attempt", "attempt",
                         "receipt", "send", "attempt", "receipt"]  # fmt: skip
        await gate.close()


async def test_a_turn_of_the_scheduler_is_requeued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-10, S-14: readable after an upgrade, its timers are planned after all."""
    async with running_stack(tmp_path, services=("scheduler", "gateway")) as stack:
        gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        effect = contracts.ScheduleTimer(
            id="a" * 32,
            ordinal=1,
            payload=contracts.ScheduleTimerPayload(
                timer_id="tea", generation=1, fire_at=datetime(2099, 1, 1, tzinfo=UTC)
            ),
        )
        turn = contracts.Turn(
            id="t1", session_key=str(ANN), ordinal=1, event=None, outcome="answered",
            state=contracts.State(), created_at=AT, effects=(effect,), v=99,
        )  # fmt: skip
        await gate.admin.publish(ANN.turn, encode(turn), {"Vigil-Effects": "t"})

        async def is_dead() -> bool:
            return await gate.admin.get_last("DEAD", ANN.dead("scheduler")) is not None

        await until(is_dead, what="the dead letter")
        found = await gate.admin.get_last("DEAD", ANN.dead("scheduler"))
        assert found is not None
        id_ = msgspec.json.decode(found.data)["id"]
        ann = await gate.person("ann")

        async def is_answering() -> bool:
            # Until it has looked for turns of an outage in both streams, nobody answers.
            return (await ann.post(f"/api/dead/{id_}/requeue")).status_code != 503

        await until(is_answering, what="the scheduler")
        problem = assert_problem(await ann.post(f"/api/dead/{id_}/requeue"), 409)
        assert "still can't be read" in problem["detail"]
        monkeypatch.setitem(contracts.VERSIONS, "turn", 99)
        assert (await ann.post(f"/api/dead/{id_}/requeue")).status_code == 200
        assert await gate.admin.get_last("TIMERS", ANN.timer("tea", 1)) is not None
        assert not stack.contexts["scheduler"].bus.violations
        assert not stack.contexts["gateway"].bus.violations
        await gate.close()


async def test_an_unreadable_dead_letter_hides_no_other(gate: Gate) -> None:
    """X-6"""
    await gate.admin.publish(ANN.dead("cortex"), b"\xff")
    await gate.admin.publish(ANN.dead("ended"), b"\xff")
    await bury(gate.admin, letter("l"))
    ann = await gate.person("ann")
    assert _ids(await ann.get("/api/dead")) == ["l"]
    assert (await ann.post("/api/dead/l/discard")).status_code == 200
