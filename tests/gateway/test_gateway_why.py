"""GET /api/why/{id}: finding what an id names, for whom, and within which limits (SPEC D-3)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

import httpx2
import pytest

from services.gateway.why import reader, search
from services.gateway.why.reader import Budget
from services.gateway.why.sought import SearchScope
from tests.support.gateway import Gate, assert_problem
from tests.support.why import START, Log
from vigil.contracts import (
    DeadLetter,
    DeadLetterEnd,
    FollowUp,
    Note,
    ScheduleTimer,
    ScheduleTimerPayload,
    SendMessage,
    SendPayload,
    State,
    encode,
)
from vigil.layout import LogLayout
from vigil.observe import trace
from vigil.subjects import ANYBODY, ENDED, Scope, SessionKey

ANN: Final = "ann:vigil:t1"
EFFECT: Final = "e" * 32
S: Final = "a" * 32
PARENT: Final = f"00-{'ab' * 16}-{'cd' * 8}-01"


def planned(log: Log, timer_id: str, event_id: str = "m1") -> None:
    """Put a message and the plan of a follow-up into the log of a session."""
    spoke = log.said_by_person("make tea", event_id)
    payload = ScheduleTimerPayload(timer_id=timer_id, generation=1, fire_at=START)
    state = State(
        turns=1, follow_ups={timer_id: FollowUp(generation=1, fire_at=START, reason="tea")}
    )
    log.turn(
        spoke, "answered", state=state, ended=(spoke.id,),
        effects=(ScheduleTimer(id=S, ordinal=1, payload=payload),),
    )  # fmt: skip


async def store(gate: Gate, log: Log, session: str = ANN) -> None:
    """Publish the records of a log under that session."""
    old, new = SessionKey.parse(ANN), SessionKey.parse(session)
    for subject, data in log.records:
        there = subject.replace(old.root + ".", new.root + ".", 1)
        body = data.replace(ANN.encode(), session.encode())
        await gate.admin.publish(there, body, {trace.HEADER: PARENT})


async def followed_up(gate: Gate) -> Log:
    """Store a whole story: a plan, what came due, what was said."""
    log = Log()
    planned(log, "tea")
    due = log.due("tea", 1)
    payload = SendPayload(text="Tea!", caused_by=due.id, fence=1, is_autonomous=True,
                          is_voidable=True)  # fmt: skip
    turn = log.turn(
        due, "answered", state=State(turns=2), ended=(due.id,),
        effects=(SendMessage(id=EFFECT, ordinal=2, payload=payload),),
    )  # fmt: skip
    log.said(EFFECT, turn, "Tea!", is_autonomous=True, caused_by=due.id)
    await store(gate, log)
    return log


async def why(person: httpx2.AsyncClient, id_: str, **query: str) -> dict[str, Any]:
    answer = await person.get(f"/api/why/{quote(id_, safe='')}", params=query)
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    found: dict[str, Any] = answer.json()
    assert found["id"] == id_
    return found


async def test_every_kind_of_id_finds_its_story(gate: Gate) -> None:
    """D-3, P-5: message, event, timer, turn, effect, sequence, signal, dead letter."""
    await followed_up(gate)
    letter = DeadLetter(
        id="delivery-SESSIONS-4", service="delivery", stream="SESSIONS", seq=4, cause="refused",
        subject="session.vigil.ann.t1.turn", data=b"{}", at=datetime.now(UTC), session_key=ANN,
    )  # fmt: skip
    await gate.admin.publish("dead.delivery.vigil.ann.t1", encode(letter))
    ann = await gate.person("ann")
    ids = {
        EFFECT: "message", "m1": "event", "timer-3": "event", "tea": "timer", "turn-2": "turn",
        S: "timer", "seq-4": "turn", "SESSIONS-4-timer.fired": "signal",
        "SESSIONS-5-message.sent-2": "signal", "delivery-SESSIONS-4": "dead_letter",
    }  # fmt: skip
    for id_, kind in ids.items():
        answer = await why(ann, id_)
        assert (answer["kind"], answer["session_key"]) == (kind, ANN), id_
        assert answer["summary"].endswith("."), id_
        assert answer["trace_id"] == "ab" * 16
        assert answer["steps"][0]["text"] == "You wrote: “make tea”", id_
        assert answer == await why(ann, id_, session=ANN), id_
    story = await why(ann, EFFECT)
    assert story["verdict"] == "said"
    assert [step["what"] for step in story["steps"]] == [
        "message.in", "turn.answered", "timer.planned", "timer.due", "turn.answered",
        "send.decided", "send.said",
    ]  # fmt: skip
    assert [step["seq"] for step in story["steps"]] == [1, 2, 2, 3, 4, 4, 5]
    assert {step["stream"] for step in story["steps"]} == {"SESSIONS"}


async def test_nobody_reads_anothers_story(gate: Gate) -> None:
    """X-4: 404, the same as for what there isn't; an admin reads everything, by name."""
    await followed_up(gate)
    bob = await gate.person("bob")
    for id_ in (EFFECT, "m1", "tea", "turn-2", "seq-1", "SESSIONS-4-timer.fired", "nothing"):
        there = await bob.get(f"/api/why/{id_}")
        assert_problem(there, 404)
        assert there.json()["detail"] == (await bob.get("/api/why/x")).json()["detail"]
        assert_problem(await bob.get(f"/api/why/{id_}", params={"session": ANN}), 404)
        assert_problem(await bob.get(f"/api/why/{id_}", params={"session": "bob:vigil:t1"}), 404)
    admin = await gate.person("root", is_admin=True)
    answer = await why(admin, EFFECT)
    assert answer["steps"][0]["text"] == "ann wrote: “make tea”"
    assert_problem(await (await gate.http()).get(f"/api/why/{EFFECT}"), 401)


async def test_what_is_no_id_is_not_found(gate: Gate) -> None:
    """S-2, X-6: nothing of it becomes a wildcard."""
    await followed_up(gate)
    ann = await gate.person("ann")
    for id_ in (
        "*", ">", "*.*", "session.>", "a b", "$JS", "..", "a/b", "a\nb", "é", "x" * 256, "seq-0",
        "seq-999999999999999", "SESSIONS-0-turn.committed", "SESSIONS-9",
    ):  # fmt: skip
        assert_problem(await ann.get(f"/api/why/{quote(id_, safe='')}"), 404)


async def test_bad_input_names_the_field(gate: Gate) -> None:
    """X-6"""
    ann = await gate.person("ann")
    for id_ in ("a\0b", "\x1b[2J", "x" * 257):
        assert_problem(await ann.get(f"/api/why/{quote(id_, safe='')}"), 422, "id")
    for session in ("x", "ann:vigil:*", "ann:vigil:"):
        assert_problem(await ann.get("/api/why/x", params={"session": session}), 422)


async def test_of_a_name_that_several_sessions_have_the_newest_is_told(gate: Gate) -> None:
    """S-8: timers are named within their session; which others have it is said."""
    for session in (ANN, "ann:vigil:t2", "bob:vigil:t1"):
        log = Log()
        planned(log, "tea", event_id=f"m-{session[-2:]}-{session[:3]}")
        await store(gate, log, session)
    ann = await gate.person("ann")
    answer = await why(ann, "tea")
    assert {answer["session_key"], *answer["others"]} == {"ann:vigil:t1", "ann:vigil:t2"}
    for key in (answer["session_key"], *answer["others"]):
        narrowed = await why(ann, "tea", session=key)
        assert (narrowed["session_key"], narrowed.get("others")) == (key, None)
    bob = await gate.person("bob")
    assert (await why(bob, "tea"))["session_key"] == "bob:vigil:t1"


async def test_the_newest_of_a_name_counts(gate: Gate) -> None:
    """D-3: a name that was used again means the last one."""
    log = Log()
    planned(log, "tea")
    order = log.control("cancel_timer", timer_id="tea")
    note = Note(code="cancelled", text="a person cancelled it", subject="tea")
    log.turn(order, "cleared", notes=(note,), state=State(turns=2), ended=(order.id,))
    await store(gate, log)
    ann = await gate.person("ann")
    answer = await why(ann, "tea")
    assert (answer["kind"], answer["verdict"]) == ("timer", "cancelled")
    nobody = Log()
    order = nobody.control("cancel_timer", timer_id="cake")
    note = Note(code="no_such_timer", text="it is not open", subject="cake")
    nobody.turn(order, "ignored", notes=(note,), ended=(order.id,))
    await store(gate, nobody, "ann:vigil:t3")
    answer = await why(ann, "cake")
    assert (answer["kind"], answer["verdict"]) == ("event", "ignored")


async def test_a_dead_letter_and_what_a_person_did_with_it(gate: Gate) -> None:
    """S-10: the record that died is told, too."""
    log = Log()
    seq = log.store(SessionKey.parse(ANN).in_event("external"), b"not json")
    await store(gate, log)
    now = datetime.now(UTC)
    letter = DeadLetter(
        id=f"SESSIONS-{seq}", service="cortex", stream="SESSIONS", subject="…", seq=seq,
        cause="not JSON", data=b"not json", at=now,
    )  # fmt: skip
    end = DeadLetterEnd(letter_id=letter.id, action="discarded", by="ann", at=now)
    await gate.admin.publish("dead.cortex.vigil.ann.t1", encode(letter))
    await gate.admin.publish(f"dead.{ENDED}.vigil.ann.t1", encode(end))
    ann = await gate.person("ann")
    answer = await why(ann, letter.id)
    assert (answer["kind"], answer["verdict"]) == ("dead_letter", "failed")
    assert answer["summary"] == "The cortex could not use it: not JSON. You discarded it."
    text = "\n".join(step["text"] for step in answer["steps"])
    assert "Here was a record that can't be read" in text
    assert "ann discarded the dead letter SESSIONS-1." in text
    assert_problem(await (await gate.person("bob")).get(f"/api/why/{letter.id}"), 404)


async def test_a_story_deep_in_a_long_log_is_found_by_few_reads(gate: Gate) -> None:
    """D-3: the way back doesn't read what lies between."""
    await followed_up(gate)
    ann = await gate.person("ann")
    session = SessionKey.parse(ANN)
    big = "x" * 5000
    await asyncio.gather(*(
        gate.turn(ANN, State(turns=3 + n, last_send=big)) for n in range(1000)
    ))  # fmt: skip
    key = SessionKey.parse("ann:vigil:busy")
    await asyncio.gather(*(
        gate.admin.publish(key.in_event("control"), b"{}") for _ in range(1000)
    ))  # fmt: skip
    asked = 0
    api = gate.stack.contexts["gateway"].bus.api

    async def counted(*args: Any, **options: Any) -> Any:
        nonlocal asked
        asked += 1
        return await api(*args, **options)

    gate.stack.contexts["gateway"].bus.api = counted  # type: ignore[method-assign]
    story = await why(ann, EFFECT)
    assert story["verdict"] == "said"
    assert asked < 60, "5 records of 2005"
    assert (await why(ann, "tea"))["verdict"] == "said"
    assert (await why(ann, "m1", session=str(session)))["kind"] == "event"


async def test_a_scan_is_bounded_and_says_what_it_did_not_read(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-6: an old id isn't found without its session, and the answer says how it could be."""
    await followed_up(gate)
    for n in range(30):
        await gate.turn("ann:vigil:other", State(turns=n))
    monkeypatch.setattr(reader, "WINDOW", 8)
    monkeypatch.setattr(search, "SCAN_RECORDS_MAX", 20)
    ann = await gate.person("ann")
    problem = assert_problem(await ann.get("/api/why/m1"), 404)
    assert "session=" in problem["detail"]
    assert (await why(ann, "m1", session=ANN))["kind"] == "event"
    monkeypatch.setattr(search, "SCAN_RECORDS_MAX", 50_000)
    assert (await why(ann, "m1"))["kind"] == "event"


async def test_a_story_that_is_too_long_to_read_is_cut(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D-3: and says so."""
    log = Log()
    spoke = log.said_by_person("a long one")
    for n in range(30):
        log.turn(spoke, "continued", notes=(Note(code="truncated", text=f"number {n}"),))
    await store(gate, log)
    monkeypatch.setattr(reader, "FACTS_MAX", 10)
    ann = await gate.person("ann")
    answer = await why(ann, spoke.id)
    assert answer["cut"] == "the log was too long to read whole"


async def test_a_slow_broker_takes_nothing_out_of_a_story(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D-3: silence isn't the end of what is stored."""
    await followed_up(gate)
    ann = await gate.person("ann")
    whole = await why(ann, "m1"), await why(ann, "tea")
    monkeypatch.setattr(reader, "QUIET_S", 0.0)
    assert (await why(ann, "m1"), await why(ann, "tea")) == whole


async def test_the_scope_of_a_search(gate: Gate) -> None:
    """X-4: subjects of the caller's own, and nothing wider."""
    own = SearchScope((Scope("*", "ann"),))
    assert own.roots(LogLayout()) == (
        ("SESSIONS", "session.*.ann.*"),
        ("SYSTEM", "system.*.ann.*"),
    )
    assert own.letters == ("dead.*.*.ann.*",)
    assert SearchScope((ANYBODY,)).roots(LogLayout(1)) == (
        ("SESSIONS", "session.*.*.*"),
        ("SYSTEM", "system.*.*.*"),
    )
    logs = [stream for stream, _ in SearchScope((ANYBODY,)).roots(LogLayout(2))]
    assert logs == ["SESSIONS_0", "SESSIONS_1", "SYSTEM"]
    worker = SessionKey.parse("ann:vigil:_worker-1")
    assert SearchScope(own.whose, worker).roots(LogLayout(2)) == (
        ("SYSTEM", "system.vigil.ann._worker-1"),
    )
    assert SearchScope(own.whose, SessionKey.parse(ANN)).letters == ("dead.*.vigil.ann.t1",)
    assert not own.includes(SessionKey.parse("bob:vigil:t1"))
    await gate.turn(ANN, State(turns=1))
    message = await gate.admin.get("SESSIONS", 1)
    assert message is not None
    counted, weighed = Budget(2, 10**6), Budget(10**6, len(message.data) + 1)
    assert [counted.take(message) for _ in range(2)] == [True, False]
    assert [weighed.take(message) for _ in range(2)] == [True, False]
