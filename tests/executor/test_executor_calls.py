"""Calls of tools by claims: run once at most, answered once, and only while somebody waits."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from services.executor import calls as module
from services.executor import work
from services.executor.presence import Presence
from tests.support import executing
from tests.support.executing import (
    ENDS,
    call,
    has_begun,
    limit,
    noted,
    open_gate,
    session_of,
    withdrawal,
)
from tests.support.memories import KEY, Session, call_of, until
from tests.support.spans import parent_of, record
from tests.support.stack import Stack
from vigil import contracts
from vigil.bus.lease import Leases
from vigil.contracts import (
    CallTool,
    State,
    Task,
    Turn,
    decode_call_claim,
    decode_dead_letter,
    encode,
)
from vigil.marks import erasure
from vigil.observe import metrics, spans, trace
from vigil.subjects import SessionKey
from vigil.worker import turns
from vigil.worker.requeue import RequeueQuestion, decode_reply
from vigil.worker.requeue import encode as encode_requeue

WORKER = SessionKey("ann", "vigil", "_worker-1f")


def count_of(stack: Stack, tool: str, outcome: str) -> float:
    return stack.contexts["executor"].metrics.value(metrics.EXECUTOR_CALLS, tool, outcome)


async def claim_by(session: Session, one: CallTool, by: str) -> None:
    """Claim a call in the place of another replica."""
    claim = turns.claim_of(session.key, one, by=by, now=datetime.now(UTC))
    await session.bus.publish(session.key.call(one.id), encode(claim), expect=0)


# ---------------------------------------------------------------- one call


@pytest.mark.parametrize("key", [KEY, WORKER])
async def test_a_tool_is_run_once_and_answered(stack: Stack, key: SessionKey) -> None:
    """S-12, X-1: claimed, run, answered, acknowledged; counted and timed; in both streams."""
    session = await session_of(stack, key)
    one = call("count", key=key, text="hello")
    await session.turn(one)
    result = await session.result(one)
    assert result.payload.content == "count hello"
    assert (result.payload.is_error, result.payload.is_tainted) == (False, False)
    assert result.caused_by == one.id
    await session.all_acked()
    assert noted(stack.settings.home) == {one.id: 1}
    (claim,) = [decode_call_claim(m.data) for m in await session.claims()]
    assert (claim.tool, claim.by) == ("count", stack.contexts["executor"].instance)
    assert count_of(stack, "count", "answered") == 1
    counts = stack.contexts["executor"].metrics
    assert counts.value(metrics.EXECUTOR_SECONDS, "count") == 1


async def test_calls_of_one_answer_run_beside_each_other(stack: Stack) -> None:
    """S-12: each is answered when it's done, and later turns don't wait for the slow ones."""
    session = await session_of(stack)
    slow = [call("count", n, gate="gate", text=str(n)) for n in range(5)]
    await session.turn(*slow)
    for one in slow:
        await has_begun(stack, one)
    later = call("count", 50, text="later turn")
    await session.turn(*slow, later)  # a repeat of the others: they are under way
    assert (await session.result(later)).payload.content == "count later turn"
    assert len(await session.results()) == 1
    open_gate(stack)
    for one in slow:
        await session.result(one)
    await session.all_acked()
    assert set(noted(stack.settings.home).values()) == {1}


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("count", {"text": 5}, "text: must be a string"),
        ("count", {"fault": "bug"}, "something went wrong while count ran"),
        ("count", {"fault": "told"}, "count"),
        ("quick", {"gate": "never"}, "did not end within 0.2 s"),
        ("nothing", {}, "no tool 'nothing'"),
    ],
)
async def test_what_goes_wrong_is_told_to_the_model(
    stack: Stack, tool: str, arguments: dict[str, Any], told: str
) -> None:
    """X-6: bad arguments, a bug, a tool that never ends, none: an answer, and the next one runs."""
    session = await session_of(stack)
    one = call(tool, **arguments)
    await session.turn(one)
    result = await session.result(one)
    assert result.payload.is_error
    assert told in result.payload.content
    after = call("count", 2)
    await session.turn(after)
    assert not (await session.result(after)).payload.is_error
    await session.all_acked()


async def test_a_source_that_is_away_is_tried_again(stack: Stack) -> None:
    """X-6: what surely did not run is tried again; then the model is told that it did not run."""
    session, source = await session_of(stack), executing.made[-1]
    source.is_away = True
    one = call("count")
    await session.turn(one)
    result = await session.result(one)
    assert result.payload.is_error
    assert "did not run" in result.payload.content
    assert noted(stack.settings.home) == {}
    source.is_away = False
    after = call("count", 2)
    await session.turn(after)
    assert not (await session.result(after)).payload.is_error


async def test_a_result_is_cut_to_what_the_tool_may_say(stack: Stack) -> None:
    """X-1: also if its source doesn't; what was cut off is told."""
    session = await session_of(stack)
    one = call("small", text="ä" * 100, times=100)  # "small " and 200 bytes, a hundred times
    await session.turn(one)
    content = (await session.result(one)).payload.content
    assert len(content.encode()) < 1024 + 100
    assert f"[... {100 * 206 - 1024} bytes left out ...]" in content
    assert content.endswith("ä" * 100)


async def test_taint_of_a_result_is_passed_on(stack: Stack) -> None:
    """X-3."""
    session = await session_of(stack)
    one = call("count", tainted=True)
    await session.turn(one)
    assert (await session.result(one)).payload.is_tainted


async def test_a_tool_that_became_riskier_is_not_run(stack: Stack) -> None:
    """X-2: it was let through as what it was; now the core has to decide anew."""
    session = await session_of(stack)
    one = call_of("count", {}, service="executor", risk="read")
    await session.turn(one)
    result = await session.result(one)
    assert result.payload.is_error
    assert "riskier" in result.payload.content
    assert noted(stack.settings.home) == {}


async def test_a_call_is_a_span_under_its_turn(
    bare: Stack, limits: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-7: with the conventions' names, and none of what the model wrote; its result goes on in the
    same trace."""
    recorded = record(monkeypatch)
    await bare.start("executor")
    session, secret = await session_of(bare), "the mauve hippopotamus"
    one, failing = call("count", 1, text=secret), call("count", 2, fault="bug")
    monkeypatch.setattr(trace, "new", lambda: f"00-{'c' * 32}-{'d' * 16}-01")
    await session.turn(one, failing)
    for each in (one, failing):
        await session.result(each)
    await session.all_acked()
    results = await session.bus.read("SESSIONS", [KEY.in_event("tool_result")])
    await bare.stop("executor")
    span = recorded.one("execute_tool count", vigil__effect=one.id)
    assert dict(span.attributes or {}) == {
        spans.GEN_AI_OPERATION: "execute_tool",
        spans.GEN_AI_TOOL: "count",
        spans.GEN_AI_TOOL_CALL: one.id,
        spans.GEN_AI_CONVERSATION: str(KEY),
        spans.SESSION: str(KEY),
        spans.EFFECT: one.id,
        spans.OUTCOME: "answered",
    }
    assert parent_of(span) == int("d" * 16, 16)
    failed = recorded.one("execute_tool count", vigil__effect=failing.id)
    assert not failed.status.is_ok
    assert failed.status.description == "failed"
    assert {m.headers[trace.HEADER][3:35] for m in results} == {"c" * 32}


# ---------------------------------------------------------------- only if somebody waits


async def test_a_call_that_is_withdrawn_before_its_first_step_leaves_nothing(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-12: or its turn would come again for ever, and it take the room of another call."""
    session, one, begin = await session_of(stack), call("count"), module.CallsInHand.begin
    seen: list[module.CallsInHand] = []

    def begin_and_withdraw(
        self: module.CallsInHand, key: SessionKey, one: CallTool
    ) -> asyncio.Task[None]:
        task = begin(self, key, one)
        if not seen:
            self.withdraw(one.id)
        seen.append(self)
        return task

    monkeypatch.setattr(module.CallsInHand, "begin", begin_and_withdraw)
    await session.turn(one)
    await session.result(one)  # its session does wait, so it runs when the turn comes again
    await session.all_acked()
    assert noted(stack.settings.home) == {one.id: 1}
    assert len(seen[-1]) == 0


async def test_a_call_is_ended_though_nobody_told_so(
    bare: Stack, limits: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-12: a replica that was cut off for a moment has missed the message."""
    limit(monkeypatch, waiting_poll_s=0.1)
    await bare.start("executor")
    session, one = await session_of(bare), call("count", gate="never")
    await session.turn(one)
    await has_begun(bare, one)
    await session.turn(is_waiting=False)
    await session.all_acked()
    assert await session.results() == {}
    assert noted(bare.settings.home, ENDS) == {}
    assert count_of(bare, "count", "cancelled") == 1


async def test_a_call_nobody_waits_for_is_not_run(bare: Stack, limits: None) -> None:
    """S-12: interrupted, stopped or past its deadline: claimed, so that it is settled, and left."""
    session = await session_of(bare)
    one = call("count")
    await session.turn(one)
    await session.turn(is_waiting=False)
    await bare.start("executor")
    await session.all_acked()
    assert await session.results() == {}
    assert noted(bare.settings.home) == {}
    assert len(await session.claims()) == 1
    assert count_of(bare, "count", "closed") == 1


async def test_a_call_that_no_loop_waits_for_is_run_if_it_is_a_task(stack: Stack) -> None:
    """X-2: what a person accepted runs while the conversation goes on."""
    session, one = await session_of(stack), call("count", text="accepted")
    now = datetime.now(UTC)
    task = Task(tool="count", title="x", due_at=now, generation=1)
    turn = Turn(
        id="turn-1", session_key=str(KEY), ordinal=1, event=None, outcome="decided",
        state=State(tasks={one.id: task}), created_at=now, effects=(one,),
    )  # fmt: skip
    await session.bus.publish(KEY.turn, encode(turn), {"Vigil-Effects": "x"})
    assert (await session.result(one)).payload.content == "count accepted"


async def test_a_withdrawn_call_is_ended(stack: Stack) -> None:
    """S-12, RELIABILITY S11: stopped while it runs: ended, and nothing is answered."""
    session = await session_of(stack)
    one, other = call("count", gate="never"), call("count", 2, gate="gate")
    await session.turn(one, other)
    await has_begun(stack, one)
    await has_begun(stack, other)
    await session.turn(withdrawal(one), other)
    open_gate(stack)
    await session.result(other)
    await session.all_acked()
    assert set(await session.results()) == {other.id}
    assert noted(stack.settings.home, ENDS) == {other.id: 1}
    assert count_of(stack, "count", "cancelled") == 1


async def test_a_call_withdrawn_before_it_began_never_begins(bare: Stack, limits: None) -> None:
    """ARCHITECTURE 4: whoever closes a call claims it, so that one who comes late finds it taken,
    even if the session seems to wait."""
    session, one = await session_of(bare), call("count")
    await session.turn(withdrawal(one))
    await bare.start("executor")
    await session.all_acked()
    (claim,) = [decode_call_claim(m.data) for m in await session.claims()]
    assert claim.by == work.NOBODY
    await session.turn(one)
    await session.all_acked()
    assert noted(bare.settings.home) == {}
    assert await session.results() == {}


async def test_a_call_is_ended_by_whichever_replica_has_it(stack: Stack) -> None:
    """S-12: the one that takes the cancelling turn tells all."""
    await stack.start("executor:2")
    session = await session_of(stack)
    calls = [call("count", n, gate="gate") for n in range(6)]
    for one in calls:
        await session.turn(*calls[: calls.index(one) + 1])
        await has_begun(stack, one)
    await session.turn(*(withdrawal(one, 50 + n) for n, one in enumerate(calls)))
    await session.all_acked()
    assert noted(stack.settings.home, ENDS) == {}
    assert await session.results() == {}
    assert set(noted(stack.settings.home).values()) == {1}


# ---------------------------------------------------------------- claimed before


@pytest.mark.parametrize(("tool", "is_run"), [("count", False), ("again", True)])
async def test_a_claim_of_a_replica_that_is_gone(stack: Stack, tool: str, is_run: bool) -> None:
    """S-12, ARCHITECTURE 4: nobody knows whether it ran: again only if it may, else ambiguous."""
    session, one = await session_of(stack), call(tool)
    await claim_by(session, one, "somebody gone")
    await session.turn(one)
    result = await session.result(one)
    await session.all_acked()
    assert (noted(stack.settings.home) == {one.id: 1}) == is_run
    assert result.payload.is_error != is_run
    assert ("ambiguous" in result.payload.content) != is_run
    assert count_of(stack, tool, "answered" if is_run else "ambiguous") == 1
    claims = [decode_call_claim(m.data).by for m in await session.claims()]
    instance = stack.contexts["executor"].instance
    assert claims == ["somebody gone", instance] if is_run else ["somebody gone"]


async def test_a_claim_of_a_replica_that_lives_is_left_to_it(stack: Stack) -> None:
    """S-12: the turn is given back until that one has answered, or is gone."""
    session, one = await session_of(stack), call("count")
    leases = Leases(session.bus, "other")
    lease = await leases.acquire("executor.other")
    assert lease is not None
    await claim_by(session, one, "other")
    await session.turn(one)
    consumer = await session.bus.api("CONSUMER.INFO.SESSIONS.executor-turns", {})

    async def is_given_back() -> bool:
        nonlocal consumer
        await lease.renew()
        consumer = await session.bus.api("CONSUMER.INFO.SESSIONS.executor-turns", {})
        return int(consumer["num_redelivered"]) > 0

    await until(is_given_back, "the turn was given back")
    assert await session.results() == {}
    await lease.release()
    assert "ambiguous" in (await session.result(one)).payload.content
    assert noted(stack.settings.home) == {}


async def test_after_a_pause_a_claim_is_looked_at_again(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-12: a lease that ran out between the claim and the run: others may have answered by now, so
    nothing is run before the session is seen to wait."""
    sure = iter([True, False])  # when it claims; when it is about to run
    monkeypatch.setattr(Presence, "is_sure", property(lambda _: next(sure, True)))
    session, one = await session_of(stack), call("count")
    await session.turn(one)
    assert not (await session.result(one)).payload.is_error
    assert noted(stack.settings.home) == {one.id: 1}
    assert next(sure, None) is None
    assert len(await session.claims()) == 1


async def test_a_result_that_is_stored_already_is_not_doubted(stack: Stack) -> None:
    """S-12: the replica that ran it died after it had answered, and before it could say so."""
    session, one = await session_of(stack), call("count")
    await claim_by(session, one, "somebody gone")
    event = turns.result_of("executor", KEY, one.id, "it was done", now=datetime.now(UTC))
    await session.bus.publish(KEY.in_event("tool_result"), encode(event))
    await session.turn(one)
    await session.all_acked()
    assert (await session.result(one)).payload.content == "it was done"
    assert noted(stack.settings.home) == {}


async def test_an_unreadable_claim_counts_as_one_that_may_have_run(stack: Stack) -> None:
    """X-6."""
    session, one = await session_of(stack), call("count")
    await session.bus.publish(KEY.call(one.id), b"{", expect=0)
    await session.turn(one)
    assert "ambiguous" in (await session.result(one)).payload.content


async def test_two_replicas_never_run_one_call_twice(stack: Stack) -> None:
    """S-5, S-12: given the same calls again and again, side by side: one run, one answer each."""
    await stack.start("executor:2")
    session = await session_of(stack)
    calls = [call("count", n, ms=20) for n in range(20)]
    for _ in range(8):
        await session.turn(*calls)
    await session.all_acked()
    assert len(await session.results()) == 20
    assert noted(stack.settings.home) == {one.id: 1 for one in calls}
    assert len(await session.claims()) == 20


async def test_calls_at_once_have_a_limit(stack: Stack) -> None:
    """X-1: `executor.calls_at_once_per_user`; those that wait are not claimed yet."""
    at_once = stack.settings.config.executor.calls_at_once_per_user
    session = await session_of(stack)
    calls = [call("count", n, gate="gate") for n in range(at_once + 5)]
    await session.turn(*calls)
    for one in calls[:at_once]:
        await has_begun(stack, one)
    counted = stack.contexts["executor"].metrics.exposition().decode()
    assert len(noted(stack.settings.home)) == at_once == len(await session.claims())
    assert "vigil_executor_calls_running" in counted
    open_gate(stack)
    for one in calls:
        await session.result(one)
    await session.all_acked()


async def test_more_calls_than_there_is_room_for_come_again(
    bare: Stack, limits: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-12: the turn goes back to the broker; nothing of it is lost or run twice."""
    limit(monkeypatch, calls_in_hand_max=3)
    await bare.start("executor")
    session = await session_of(bare)
    first = [call("count", n, gate="gate") for n in range(3)]
    await session.turn(*first)
    for one in first:
        await has_begun(bare, one)
    second = [call("count", n, ms=1) for n in range(10, 14)]
    await session.turn(*first, *second)
    open_gate(bare)
    for one in (*first, *second):
        await session.result(one)
    await session.all_acked()
    assert set(noted(bare.settings.home).values()) == {1}


# ---------------------------------------------------------------- stopping


async def test_what_ends_soon_is_finished_at_the_end(stack: Stack) -> None:
    """X-5: SIGTERM while a tool runs that ends in time: answered, and acknowledged."""
    session, one = await session_of(stack), call("count", gate="gate")
    await session.turn(one)
    await has_begun(stack, one)
    stopping = asyncio.create_task(stack.stop("executor"))
    open_gate(stack)
    await stopping
    assert not (await session.result(one)).payload.is_error
    await session.all_acked()


async def test_what_is_not_begun_is_given_back_and_what_is_cut_off_is_ambiguous(
    bare: Stack, limits: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-5, S-12: another replica runs the first, and tells of the second that nobody knows."""
    limit(monkeypatch, stop_grace_s=0.2)
    await bare.start("executor")
    session = await session_of(bare)
    at_once = bare.settings.config.executor.calls_at_once_per_user
    cut = [call("count", n, gate="never") for n in range(at_once)]
    waiting = call("count", 50)
    await session.turn(*cut)
    for one in cut:
        await has_begun(bare, one)
    await session.turn(*cut, waiting)
    await bare.stop("executor")
    await bare.start("executor")
    assert not (await session.result(waiting)).payload.is_error
    for one in cut:
        assert "ambiguous" in (await session.result(one)).payload.content
    await session.all_acked()
    assert set(noted(bare.settings.home).values()) == {1}


# ---------------------------------------------------------------- what can't be used


async def test_an_unreadable_turn_is_a_dead_letter(stack: Stack) -> None:
    """X-6: with its cause, once; the session's next turn goes on; a person may ask again."""
    session = await session_of(stack)
    ack = await session.bus.publish(KEY.turn, b'{"v":1,"effects":"?"}', {"Vigil-Effects": "x"})
    one = call("count")
    await session.turn(one)
    await session.result(one)
    await session.all_acked()
    (letter,) = [
        decode_dead_letter(m.data)
        for m in await session.bus.read("DEAD", ["dead.executor.vigil.ann.t1"])
    ]
    assert (letter.service, letter.stream, letter.seq) == ("executor", "SESSIONS", ack.seq)
    question = RequeueQuestion(
        letter_id=letter.id, stream="SESSIONS", seq=ack.seq, subject=KEY.turn, by="ann"
    )
    gateway = await stack.bus("gateway")
    answer = await gateway.ask("rpc.requeue.executor", encode_requeue(question), timeout=5)
    assert decode_reply(answer.data).outcome == "refused"


async def test_an_id_that_is_no_part_of_a_subject_reaches_none(stack: Stack) -> None:
    """RELIABILITY S4: a turn is refused whole, before anything is claimed under such a name."""
    session = await session_of(stack)
    for number, id_ in enumerate(("*", ">", "a.b", "", "x" * 65, "a b", "é")):
        await session.turn(msgspec.structs.replace(call("count", number), id=id_))
    await session.all_acked()
    assert await session.claims() == []
    assert noted(stack.settings.home) == {}
    assert len(await session.bus.read("DEAD", ["dead.executor.>"])) == 7


async def test_a_turn_of_a_newer_version_is_done_after_the_update(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-10, S-14: requeued by a person; asked twice it is run once."""
    session, one = await session_of(stack), call("count", text="from the future")
    monkeypatch.setitem(contracts.VERSIONS, "turn", 3)
    monkeypatch.setitem(contracts.LIFTS, ("turn", 2), lambda raw: raw | {"effects": "?"})
    seq = await session.turn(one)
    await session.all_acked()
    assert noted(stack.settings.home) == {}
    monkeypatch.setitem(contracts.VERSIONS, "turn", 2)
    question = RequeueQuestion(
        letter_id="l", stream="SESSIONS", seq=seq, subject=KEY.turn_for("x"), by="ann"
    )
    gateway = await stack.bus("gateway")
    for _ in range(2):
        answer = await gateway.ask("rpc.requeue.executor", encode_requeue(question), timeout=5)
        assert decode_reply(answer.data).outcome == "done"
    assert noted(stack.settings.home) == {one.id: 1}
    for stream, seq_ in (("SESSIONS", seq + 99), ("BOARD", seq)):
        wrong = msgspec.structs.replace(question, stream=stream, seq=seq_)
        answer = await gateway.ask("rpc.requeue.executor", encode_requeue(wrong), timeout=5)
        assert decode_reply(answer.data).outcome == "refused"


async def test_a_fault_of_ours_answers_and_is_buried(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-6: tried some times, then the model is told and a person finds the letter."""

    async def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(module.CallsInHand, "_settle", broken)
    session, one = await session_of(stack), call("count")
    await session.turn(one)
    result = await session.result(one)
    assert result.payload.is_error
    assert result.payload.content == module.GIVEN_UP
    await session.all_acked()
    (letter,) = await session.bus.read("DEAD", ["dead.executor.>"])
    assert "a bug of ours" in decode_dead_letter(letter.data).cause


async def test_other_turns_are_not_brought(stack: Stack) -> None:
    """S-5: calls of memory's tools, sends and timers are no business of the executor's."""
    session = await session_of(stack)
    await session.turn(call_of("remember", {"text": "x"}))
    for _ in range(30):
        await session.turn()
    await session.all_acked()
    assert await session.claims() == []


async def test_nothing_is_done_for_somebody_who_is_being_erased(stack: Stack) -> None:
    """X-8: what runs is ended, and nothing more is begun; others are served as ever."""
    session, one = await session_of(stack), call("count", gate="gate")
    await session.turn(one)
    await has_begun(stack, one)
    await erasure.begin(session.bus, "ann", datetime.now(UTC))
    await session.all_acked()
    open_gate(stack)
    await session.turn(call("count", 2))
    await session.all_acked()
    bob = await session_of(stack, SessionKey("bob", "vigil", "t1"))
    his = call("count", 3, key=bob.key)
    await bob.turn(his)
    await bob.result(his)
    assert await session.results() == {}
    assert noted(stack.settings.home, ENDS) == {his.id: 1}
    assert noted(stack.settings.home) == {one.id: 1, his.id: 1}
