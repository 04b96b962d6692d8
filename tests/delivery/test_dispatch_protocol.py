"""Carrying a message over a channel, against a modelled log: replicas, crashes, lost answers."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import example, given
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from services.delivery import dispatch, orders
from services.delivery.dispatch import (
    Ask,
    Bury,
    Carrying,
    FindSpoken,
    Later,
    OrderNext,
    ReadLog,
    Sent,
    StoreAttempt,
    StoreReceipt,
    Terms,
    TrySend,
)
from services.delivery.orders import Order, Seen
from tests.support.examples import up_to
from vigil.backoff import Backoff
from vigil.channels import answers
from vigil.channels.answers import NotTaken, Taken, Unclear
from vigil.contracts import Attempt, Dispatch, Receipt

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
REPLICAS = 3
WHO = st.integers(0, REPLICAS - 1)
ANSWERS = {
    "taken": Taken(),
    "refused": NotTaken(reason="503", status=503),
    "final": NotTaken(reason="410 Gone", status=410, is_final=True),
    "unclear": Unclear(reason="timeout"),
    "unclear but taken": Unclear(reason="cut"),
}
HAS_IT = {"taken", "unclear but taken"}


def terms_of(*, is_idempotent: bool, attempts_max: int = 3) -> Terms:
    return Terms(
        is_idempotent=is_idempotent,
        attempts_max=attempts_max,
        backoff=Backoff(5.0, 60.0),
        patience_s=15.0,
    )


class Replica:
    """One replica's work on an order."""

    def __init__(self) -> None:
        self.asks: Carrying | None = None
        self.ask: Ask | None = None
        self.order: Order | None = None
        self.later: Later | None = None

    def begin(self, order: Order, terms: Terms) -> None:
        self.order, self.asks = order, dispatch.carry(order, terms)
        self.go_on(None)

    def go_on(self, answer: Any) -> None:
        assert self.asks is not None
        try:
            self.ask = self.asks.send(answer)
        except StopIteration as end:
            self.later = end.value
            self.asks = self.ask = None


class CarryMachine(RuleBasedStateMachine):
    """Every interleaving of replicas, crashes, a receiver, a person, and a forgetful broker."""

    @initialize(
        is_idempotent=st.booleans(),
        is_voidable=st.booleans(),
        otherwise=st.sampled_from([(), ("sms",), ("sms", "mail")]),
    )
    def a_turn_gives_an_order(
        self, is_idempotent: bool, is_voidable: bool, otherwise: tuple[str, ...] = ()
    ) -> None:
        self.terms = terms_of(is_idempotent=is_idempotent)
        self.is_voidable = is_voidable
        self.spoke_seq = 0
        self.now = AT
        self.seq = 0
        self.orders: list[Order] = []
        self.attempts: list[tuple[int, Attempt]] = []
        self.receipts: list[tuple[int, Receipt]] = []
        self.buried: set[int] = set()
        self.sent: list[tuple[int, str]] = []
        """(order, what became of it) of every request that left."""
        self.replicas = [Replica() for _ in range(REPLICAS)]
        self.in_flight: list[tuple[Order, StoreAttempt | StoreReceipt]] = []
        record = Dispatch(
            effect_id="e", session_key="ann:vigil:t", channel="ops", said_seq=1, at=self.now,
            otherwise=otherwise,
        )  # fmt: skip
        self._order(record)

    def _order(self, record: Dispatch) -> None:
        self.seq += 1
        self.orders.append(Order(seq=self.seq, record=record))

    # ------------------------------------------------------------ the log

    def seen(self) -> Seen:
        newest = self.orders[-1].seq
        receipts = [r for seq, r in self.receipts if seq > newest]
        return Seen(
            now=self.now,
            dice=0.5,
            dispatch_seq=newest,
            attempts=tuple(a for seq, a in self.attempts if seq > newest),
            attempt_seq=self.attempts[-1][0] if self.attempts else 0,
            receipt=receipts[-1] if receipts else None,
            receipt_seq=self.receipts[-1][0] if self.receipts else 0,
        )

    def store(self, order: Order, ask: StoreAttempt | StoreReceipt) -> int | None:
        """Compare and set."""
        log: list[Any] = self.attempts if isinstance(ask, StoreAttempt) else self.receipts
        if (log[-1][0] if log else 0) != ask.expect:
            return None
        self.seq += 1
        record: Any = (
            dispatch.attempt_of(order, ask, now=self.now)
            if isinstance(ask, StoreAttempt)
            else dispatch.receipt_of(order, ask, now=self.now)
        )
        log.append((self.seq, record))
        return self.seq

    # ------------------------------------------------------------ what happens

    @rule(who=WHO, which=st.integers(0, 3), steps=st.integers(0, 6))
    def an_order_is_delivered(self, who: int, which: int, steps: int) -> None:
        replica = self.replicas[who]
        if replica.asks is None:
            replica.begin(self.orders[max(len(self.orders) - 1 - which, 0)], self.terms)
        for _ in range(steps):
            self.step(replica, "ok", "taken")

    @rule(who=WHO, answer=st.sampled_from(sorted(ANSWERS)))
    def a_replica_works_in_peace(self, who: int, answer: str) -> None:
        replica = self.replicas[who]
        if replica.asks is None:
            replica.begin(self.orders[-1], self.terms)
        while replica.asks is not None:
            self.step(replica, "ok", answer)

    @rule(
        who=WHO,
        how=st.sampled_from(["ok", "ok", "no answer", "lost", "late"]),
        answer=st.sampled_from(sorted(ANSWERS)),
    )
    def a_replica_steps(self, who: int, how: str, answer: str) -> None:
        self.step(self.replicas[who], how, answer)

    def step(self, replica: Replica, how: str, answer: str) -> None:
        ask, order = replica.ask, replica.order
        if ask is None or order is None:
            return
        if isinstance(ask, ReadLog):
            replica.go_on(self.seen())
        elif isinstance(ask, FindSpoken):
            replica.go_on(self.spoke_seq if self.is_voidable else 0)
        elif isinstance(ask, TrySend):
            self.sent.append((order.seq, answer))
            replica.go_on(Sent(answer=ANSWERS[answer], now=self.now, dice=0.5))
        elif isinstance(ask, OrderNext):
            if how in ("ok", "no answer") and self.orders[-1].seq == order.seq:
                self._order(orders.next_of(order, ask.channel, ask.otherwise, now=self.now))
            replica.go_on(None)
        elif isinstance(ask, Bury):
            self.buried.add(order.seq)
            replica.go_on(None)
        else:
            replica.go_on(self._write(order, ask, how))

    def _write(self, order: Order, ask: StoreAttempt | StoreReceipt, how: str) -> Any:
        if how == "late":
            self.in_flight.append((order, ask))
        seq = self.store(order, ask) if how in ("ok", "no answer") else None
        answer = seq if how == "ok" else None
        return answer if isinstance(ask, StoreAttempt) else answer is not None

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data())
    def a_late_write_arrives(self, data: st.DataObject) -> None:
        write = data.draw(st.sampled_from(self.in_flight))
        self.in_flight.remove(write)
        self.store(*write)

    @rule(who=WHO)
    def a_replica_crashes(self, who: int) -> None:
        if isinstance(self.replicas[who].ask, TrySend):  # the request may have left
            order = self.replicas[who].order
            assert order is not None
            self.sent.append((order.seq, "unclear but taken"))
        self.replicas[who] = Replica()

    @rule(seconds=st.sampled_from([0.1, 3.0, 20.0, 70.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    @rule()
    def the_person_speaks(self) -> None:
        self.seq += 1
        self.spoke_seq = self.seq

    @precondition(lambda self: self.orders[-1].seq in self.buried and len(self.orders) < 5)
    @rule()
    def a_person_requeues(self) -> None:
        assert orders.may_requeue(self.seen()) is None
        record = msgspec.structs.replace(
            self.orders[-1].record, requeued_by="ann", otherwise=(), instead_of=""
        )
        self._order(record)

    # ------------------------------------------------------------ what must hold

    @invariant()
    def once_at_most_without_idempotency(self) -> None:
        """D-2"""
        if self.terms.is_idempotent:
            return
        for order in self.orders:
            became = [answer for seq, answer in self.sent if seq == order.seq]
            assert all(answer == "refused" for answer in became[:-1]), became

    @invariant()
    def every_request_was_announced(self) -> None:
        """A crash after any request leaves its `begun` in the log."""
        begun = sum(attempt.state == "begun" for _, attempt in self.attempts)
        assert len(self.sent) <= begun

    @invariant()
    def tries_are_bounded_and_numbered(self) -> None:
        """S-10: bounded attempts."""
        for begin, end in self._spans():
            numbers = [
                a.number for seq, a in self.attempts if begin < seq < end and a.state == "begun"
            ]
            assert numbers == list(range(1, len(numbers) + 1))
            assert len(numbers) <= self.terms.attempts_max

    @invariant()
    def an_order_has_one_receipt(self) -> None:
        for begin, end in self._spans():
            assert len([seq for seq, _ in self.receipts if begin < seq < end]) <= 1

    @invariant()
    def the_receipt_tells_the_truth(self) -> None:
        for begin, end in self._spans():
            became = [answer for seq, answer in self.sent if seq == begin]
            for outcome in [r.outcome for seq, r in self.receipts if begin < seq < end]:
                if outcome == "delivered":
                    assert "taken" in became
                if outcome == "failed" and not self.terms.is_idempotent:
                    assert not HAS_IT & set(became)
                if outcome == "ambiguous":
                    assert not self.terms.is_idempotent

    @invariant()
    def what_goes_on_is_nowhere_yet(self) -> None:
        """G-6: another channel gets only what the one before surely refused, each once."""
        for before, order in itertools.pairwise(self.orders):
            if order.record.requeued_by is None:
                became = {answer for seq, answer in self.sent if seq == before.seq}
                assert not became & {*HAS_IT, "unclear"}, became
        ways = [order.record.channel for order in self.orders if not order.record.requeued_by]
        assert ways == ["ops", "sms", "mail"][: len(ways)]

    def _spans(self) -> list[tuple[int, int]]:
        starts = [order.seq for order in self.orders]
        return list(zip(starts, [*starts[1:], self.seq + 1], strict=True))

    def teardown(self) -> None:
        """Nothing is stuck: somebody who works in peace closes the order."""
        if not hasattr(self, "orders"):
            return
        for _ in range(90):
            replica, order = Replica(), self.orders[-1]
            replica.begin(order, self.terms)
            while replica.asks is not None:
                self.step(replica, "ok", "refused")
            if replica.later is None and self.orders[-1] is order:
                break
            if replica.later is None:
                continue
            self.now = max(self.now, replica.later.at)
        receipt = self.seen().receipt
        assert receipt is not None
        is_dead = receipt.outcome in ("failed", "ambiguous")
        assert (self.orders[-1].seq in self.buried) == is_dead
        self.once_at_most_without_idempotency()


TestCarry = CarryMachine.TestCase
TestCarry.settings = up_to(400, stateful_step_count=50)
TestCarry.__doc__ = "S-10, D-2: bounded, at most once without idempotency, nothing stuck."


# ---------------------------------------------------------------- the policy


def drive(
    terms: Terms, given: list[answers.Answer], *, spoke_seq: int = 0, by: str | None = None
) -> list[str]:
    """Carry one order through `given` -> what was stored, in words."""
    machine = CarryMachine()
    machine.a_turn_gives_an_order(terms.is_idempotent, True)
    machine.terms, machine.spoke_seq = terms, spoke_seq
    record = msgspec.structs.replace(machine.orders[0].record, requeued_by=by)
    machine.orders = [msgspec.structs.replace(machine.orders[0], record=record)]
    left = list(given)
    for _ in range(20):
        replica = Replica()
        replica.begin(machine.orders[0], terms)
        while replica.asks is not None:
            if isinstance(replica.ask, TrySend):
                replica.go_on(Sent(answer=left.pop(0), now=machine.now, dice=0.0))
            else:
                machine.step(replica, "ok", "")
        if replica.later is None:
            break
        machine.now = replica.later.at
    assert not left
    ends = [f"{a.number} {a.state}" for _, a in machine.attempts if a.state != "begun"]
    return [*ends, *(f"{r.outcome}: {r.reason}" for _, r in machine.receipts)]


REFUSED = NotTaken(reason="503", status=503)
UNCLEAR = Unclear(reason="timeout")


def test_what_comes_of_which_answers() -> None:
    """S-10, D-2"""
    safe, unsafe = terms_of(is_idempotent=True), terms_of(is_idempotent=False)
    gone = NotTaken(reason="410 Gone", status=410, is_final=True)
    taken = Taken(reason="204 No Content")
    delivered = "delivered: 204 No Content"
    assert drive(safe, [taken]) == [delivered]
    assert drive(safe, [REFUSED, UNCLEAR, taken]) == ["1 refused", "2 unknown", delivered]
    assert drive(safe, [gone]) == ["1 refused", "failed: 410 Gone; 1 try"]
    assert drive(safe, [UNCLEAR, REFUSED, REFUSED]) == [
        "1 unknown", "2 refused", "3 refused", "failed: 503; 3 tries, may have arrived in 1",
    ]  # fmt: skip
    assert drive(unsafe, [REFUSED, taken]) == ["1 refused", delivered]
    assert drive(unsafe, [REFUSED, UNCLEAR]) == [
        "1 refused", "2 unknown",
        "ambiguous: timeout; whether the receiver has it is not known",
    ]  # fmt: skip


def test_a_receiver_writes_no_novels_into_the_log() -> None:
    """X-6: of its words only so many are stored, whatever it answers."""
    safe, words = terms_of(is_idempotent=True), "x" * 60_000
    ends = [*drive(safe, [Taken(reason=words)]),
            *drive(safe, [NotTaken(reason=words, is_final=True)])]  # fmt: skip
    assert max(map(len, ends)) < 600


def test_a_retry_is_dropped_once_the_person_has_spoken() -> None:
    """S-6: the first try is of what was said; a later one would come out of place."""
    safe = terms_of(is_idempotent=True)
    assert drive(safe, [REFUSED], spoke_seq=7) == [
        "1 refused", "dropped: the person has spoken (sequence 7); 1 try",
    ]  # fmt: skip
    assert drive(safe, [Taken()], spoke_seq=7) == ["delivered: "]
    # Whoever requeues it wants it now.
    assert drive(safe, [REFUSED, Taken()], spoke_seq=7, by="ann") == ["1 refused", "delivered: "]


def test_a_try_under_way_is_waited_for_and_then_ended_for_whoever_sleeps() -> None:
    """D-2: what comes late from the sleeper changes nothing."""
    machine = CarryMachine()
    machine.a_turn_gives_an_order(False, False)
    sleeper, other = machine.replicas[:2]
    sleeper.begin(machine.orders[0], machine.terms)
    while not isinstance(sleeper.ask, TrySend):
        machine.step(sleeper, "ok", "")
    machine.a_replica_works_in_peace(1, "taken")
    assert other.later == Later(AT + timedelta(seconds=15))
    machine.time_passes(20.0)
    machine.a_replica_works_in_peace(1, "taken")
    assert (other.later, machine.sent) == (None, [])
    machine.a_replica_works_in_peace(0, "refused")
    assert [a.state for _, a in machine.attempts] == ["begun", "unknown"]
    assert [r.outcome for _, r in machine.receipts] == ["ambiguous"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 410, 413, 422, 451])
def test_a_final_refusal_is_final(status: int) -> None:
    answer = answers.answer_of(status, "No", retry_after="9", location_host=None, now=AT)
    assert answer == NotTaken(reason=f"{status} No", status=status, is_final=True)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 501, 503, 507, 599])
def test_what_may_pass_is_tried_again(status: int) -> None:
    answer = answers.answer_of(status, "Later", retry_after="9", location_host=None, now=AT)
    assert answer == NotTaken(reason=f"{status} Later", status=status, wait_s=9.0)


@pytest.mark.parametrize("status", [502, 504, 520, 522, 524])
def test_a_relay_that_got_no_answer_tells_nothing(status: int) -> None:
    """D-2: behind it the receiver may have taken the message."""
    answer = answers.answer_of(status, "Bad", retry_after=None, location_host=None, now=AT)
    assert isinstance(answer, Unclear)


@given(st.text(max_size=40))
@example("1 Jan 99999999999999999999 00:00:00 GMT")
@example("Sun, 01 Mar 2026 12:00:30 +99999999999999999999")
@example("Fri, 31 Dec 9999 23:59:59 -2359")
def test_any_retry_after_is_a_pause(header: str) -> None:
    """X-6: a receiver can't break the retries with a header."""
    assert answers.retry_after_s(header, AT) >= 0.0


@given(st.integers(1, 200), st.floats(0, 1, exclude_max=True), st.floats(0, 1e9))
def test_a_pause_is_between_half_a_step_and_the_cap(
    number: int, dice: float, wait_s: float
) -> None:
    """S-10: no retry storm."""
    terms = terms_of(is_idempotent=True)
    assert 2.5 <= dispatch.backoff_s(number, dice, terms, wait_s=wait_s) <= 60.0
