"""The protocol against a modelled log: replicas, lost answers, repeats, crashes, late writes."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from services.delivery import decide
from services.delivery.decide import Ask, Await, Claim, Close, Find, Heard, Read, Tail
from tests.support.delivery import send_of
from tests.support.examples import up_to
from vigil.contracts import SendMessage, SendPayload
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey

KEY = SessionKey("ann", "vigil", "t1")
REPLICAS = 3
WHO = st.integers(0, REPLICAS - 1)
Asks = Generator[Ask, Any, Tail]


class Replica:
    """One delivery replica's work on the session."""

    def __init__(self) -> None:
        self.tail: Tail | None = None
        self.asks: Asks | None = None
        self.ask: Ask | None = None
        self.send: SendMessage | None = None

    def begin(self, send: SendMessage, *, is_repeat: bool) -> None:
        self.send = send
        self.asks = decide.settle(KEY, send, self.tail, is_repeat=is_repeat)
        self.go_on(None)

    def go_on(self, answer: Any) -> None:
        assert self.asks is not None
        try:
            self.ask = self.asks.send(answer)
        except StopIteration as end:
            self.tail = end.value
            self.asks = self.ask = self.send = None


class DeliveryMachine(RuleBasedStateMachine):
    """Every interleaving of people, commits, replicas and a broker that answers late or never."""

    def __init__(self) -> None:
        super().__init__()
        self.seq = 0
        self.log: list[tuple[str, int]] = []
        self.receipts: dict[str, str] = {}
        self.sends: list[SendMessage] = []
        self.user_seqs = [0]
        self.replicas = [Replica() for _ in range(REPLICAS)]
        self.in_flight: list[tuple[str, int]] = []

    # ------------------------------------------------------------ the log

    def store(self, subject: str) -> int:
        self.seq += 1
        self.log.append((subject, self.seq))
        return self.seq

    def claim(self, effect_id: str, expect: int) -> int | None:
        last = self.log[-1][1] if self.log else 0
        return self.store(KEY.out_said(effect_id)) if last == expect else None

    def find(self, effect_id: str) -> Tail | None:
        own = KEY.out_said(effect_id)
        for subject, seq in self.log:
            if subject == own:
                return decide.found_said(effect_id, seq)
        return Tail(effect_id) if effect_id in self.receipts else None

    # ------------------------------------------------------------ what happens

    @rule()
    def a_person_speaks(self) -> None:
        self.user_seqs.append(self.store(KEY.in_user))

    @precondition(lambda self: len(self.sends) < 8)
    @rule(is_autonomous=st.booleans(), data=st.data())
    def a_turn_is_committed(self, is_autonomous: bool, data: st.DataObject) -> None:
        self.seq += 1
        oldest = self.sends[-1].payload.fence if self.sends else 0
        fence = data.draw(st.sampled_from([s for s in self.user_seqs if s >= oldest]))
        previous = self.sends[-1].id if self.sends else None
        self.sends.append(
            send_of(
                KEY,
                len(self.sends) + 1,
                fence=fence,
                previous=previous,
                is_autonomous=is_autonomous,
            )
        )

    @precondition(lambda self: self.sends)
    @rule(who=WHO, back=st.integers(-2, 1), is_repeat=st.booleans(), steps=st.integers(0, 6))
    def a_turn_is_delivered(self, who: int, back: int, is_repeat: bool, steps: int) -> None:
        """Deliver a turn near the first open one: an old one again, that one, or one too early."""
        replica = self.replicas[who]
        if replica.asks is None:
            settled = sum(self.find(send.id) is not None for send in self.sends)
            turn = min(max(settled + back, 0), len(self.sends) - 1)
            replica.begin(self.sends[turn], is_repeat=is_repeat)
        for _ in range(steps):
            self.step(replica, "ok", 0)

    @rule(
        who=WHO,
        claim=st.sampled_from(["ok", "ok", "no answer", "lost", "late"]),
        unread=st.integers(0, 2),
    )
    def a_replica_steps(self, who: int, claim: str, unread: int) -> None:
        self.step(self.replicas[who], claim, unread)

    def step(self, replica: Replica, claim: str, unread: int) -> None:
        """Answer what a replica asked. `unread`: how much of the end a reading misses."""
        ask, send = replica.ask, replica.send
        if ask is None or send is None:
            return
        if isinstance(ask, Await):
            if (found := self.find(ask.effect_id)) is not None:
                replica.go_on(found)
        elif isinstance(ask, Find):
            replica.go_on(self.find(ask.effect_id))
        elif isinstance(ask, Read):
            after = [entry for entry in self.log if entry[1] > ask.after]
            replica.go_on(after[: max(len(after) - unread, 0)])
        elif isinstance(ask, Close):
            self.receipts.setdefault(send.id, ask.outcome)
            replica.go_on(None)
        else:
            replica.go_on(self._answer(send.id, ask, claim))

    def _answer(self, effect_id: str, ask: Claim, how: str) -> int | None:
        if how == "lost":
            return None
        if how == "late":
            self.in_flight.append((effect_id, ask.expect))
            return None
        seq = self.claim(effect_id, ask.expect)
        return seq if how == "ok" else None

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data())
    def a_late_claim_arrives(self, data: st.DataObject) -> None:
        claim = data.draw(st.sampled_from(self.in_flight))
        self.in_flight.remove(claim)
        self.claim(*claim)

    @rule(who=WHO)
    def a_replica_crashes(self, who: int) -> None:
        self.replicas[who] = Replica()

    @rule(who=WHO)
    def a_replica_forgets(self, who: int) -> None:
        if self.replicas[who].asks is None:
            self.replicas[who].tail = None

    # ------------------------------------------------------------ what must hold

    def said(self) -> list[tuple[str, int]]:
        return [
            (subject.rpartition(".")[2], seq) for subject, seq in self.log if ".out." in subject
        ]

    @invariant()
    def nothing_is_said_twice_or_out_of_order(self) -> None:
        ids = [effect_id for effect_id, _ in self.said()]
        order = [send.id for send in self.sends if send.id in set(ids)]
        assert ids == order

    @invariant()
    def nothing_void_is_said(self) -> None:
        sends = {send.id: send.payload for send in self.sends}
        for effect_id, seq in self.said():
            assert effect_id not in self.receipts
            payload = sends[effect_id]
            if payload.is_voidable:
                assert not [u for u in self.user_seqs if payload.fence < u < seq]

    @invariant()
    def only_voidable_sends_are_void(self) -> None:
        sends = {send.id: send.payload for send in self.sends}
        assert all(sends[effect_id].is_voidable for effect_id in self.receipts)

    def teardown(self) -> None:
        """Nothing is stuck: every send is settled once somebody works in peace."""
        for send in self.sends:
            replica = Replica()
            replica.begin(send, is_repeat=True)
            for _ in range(10):
                self.step(replica, "ok", 0)
            assert replica.asks is None
            assert self.find(send.id) is not None
        self.nothing_is_said_twice_or_out_of_order()
        self.nothing_void_is_said()


TestDeliveryProtocol = DeliveryMachine.TestCase
TestDeliveryProtocol.settings = up_to(400, stateful_step_count=60)
TestDeliveryProtocol.__doc__ = "S-5, S-6, S-10: once, in order, nothing void, nothing stuck."


@given(
    st.lists(st.sampled_from(["user", "own", "other"]), max_size=20),
    st.integers(0, 20),
)
def test_reading_in_parts_is_reading_at_once(kinds: list[str], cut: int) -> None:
    """S-6: a page border changes nothing."""
    subjects = {"user": KEY.in_user, "own": KEY.out_said("a"), "other": KEY.out_said("b")}
    log = [(subjects[kind], seq) for seq, kind in enumerate(kinds, start=6)]
    start = Heard(5, 5)
    whole = decide.listen(start, KEY, "a", log)
    assert decide.listen(decide.listen(start, KEY, "a", log[:cut]), KEY, "a", log[cut:]) == whole
    assert whole.user_seq == max([5, *(s for s, k in enumerate(kinds, 6) if k == "user")])
    assert bool(whole.said_seq) == ("own" in kinds)


def test_what_is_known_is_expected_without_reading() -> None:
    """S-5: the ordinary case costs one publish."""
    follow_up = SendPayload(
        text="x", caused_by="e", fence=5, previous="p", is_autonomous=True, is_voidable=True
    )
    assert decide.known_before(follow_up, Tail("p", 7, 5)) == Heard(7, 5)
    assert decide.known_before(follow_up, Tail("other", 7, 5)) == Heard(5, 5)
    assert decide.known_before(follow_up, decide.found_said("p", 3)) == Heard(5, 5)
    assert decide.known_before(follow_up, decide.found_said("p", 7)) is None
    reply = SendPayload(text="x", caused_by="e", fence=5, previous="p")
    assert decide.known_before(reply, decide.found_said("p", 7)) == Heard(7, 7)


@pytest.mark.parametrize(
    "subject", ["session.vigil.ann._worker.turn", "session.vigil.ann.t1.other"]
)
def test_a_turn_elsewhere_is_refused(subject: str) -> None:
    """S-2: a record is believed only where it belongs."""
    with pytest.raises(InvalidInput):
        decide.read_turn(subject, b"{}")
