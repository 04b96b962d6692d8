"""Properties of the core over random lives of a session (SPEC S-1, S-4 to S-8, S-12, S-13)."""

from __future__ import annotations

from datetime import datetime

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from services.cortex import core
from services.cortex.core import Draft, Policy
from services.cortex.model import ModelAnswer
from tests.cortex.driver import KEY, Driver, answer, call
from vigil.contracts import SendMessage

TIMER_IDS = ("a", "b", "c")
POLICY = Policy(autonomy_enabled=True, retries_max=2)

schedules = st.builds(
    lambda timer_id, delay, keep, message: call(
        "schedule_followup",
        timer_id=timer_id,
        delay_seconds=delay,
        reason="r",
        keep=keep,
        message=message,
    ),
    st.sampled_from(TIMER_IDS),
    st.floats(-10, 100),
    st.booleans(),
    st.sampled_from([None, "Hey"]),
)
calls = st.one_of(
    schedules,
    st.builds(lambda t: call("cancel_followup", timer_id=t), st.sampled_from(TIMER_IDS)),
    st.just(call("send_message", text="by the way")),
    st.just(call("no_such_tool")),
    st.just(call("send_message", wrong=1)),
)
answers = st.one_of(
    st.builds(answer, st.sampled_from(["Hello.", "", "  "])),
    st.builds(lambda c: answer("Let me.", *c), st.lists(calls, min_size=1, max_size=3)),
    st.builds(lambda c: answer(c, stop="max_tokens"), calls),
    st.just(answer(stop="refusal")),
    st.just(answer("half", stop="pause_turn")),
    st.just(TimeoutError("529")),
    st.just(ValueError("401")),
)


class Life(RuleBasedStateMachine):
    """Random events, answers, delays, interruptions and takeovers of one session."""

    def __init__(self) -> None:
        super().__init__()
        self.script: list[ModelAnswer | Exception] = []
        self.driver = Driver(self.think, POLICY)
        self.users: list[str] = []

    def think(self, draft: Draft) -> ModelAnswer | Exception:
        assert draft.loop.calls < POLICY.calls_max
        return self.script.pop() if self.script else answer("Hello.")

    @rule(script=st.lists(answers, max_size=4))
    def plan(self, script: list[ModelAnswer | Exception]) -> None:
        self.script = script

    @rule(seconds=st.sampled_from([0.0, 0.001, 5.0, 14.999, 15.0, 3600.0]))
    def wait(self, seconds: float) -> None:
        self.driver.wait(seconds)

    @rule()
    def user(self) -> None:
        self.driver.user()
        self._after_user()

    def _after_user(self) -> None:
        self.users.append(next(reversed(self.driver.events.values())).id)

    @rule(key=st.sampled_from(["k1", "k2"]))
    def keyed_user(self, key: str) -> None:
        is_new = key not in self.users
        self.driver.user(event_id=key)
        if is_new:
            self.users.append(key)

    @rule(timer_id=st.sampled_from(TIMER_IDS))
    def timer(self, timer_id: str) -> None:
        self.driver.timer(timer_id)

    @rule(timer_id=st.sampled_from(TIMER_IDS), generation=st.integers(0, 5))
    def stale_timer(self, timer_id: str, generation: int) -> None:
        self.driver.timer(timer_id, generation)

    @rule()
    def deadline(self) -> None:
        loop = self.driver.state.loop
        if loop is not None and loop.retry is not None:
            self.driver.deadline()

    @rule(
        op=st.sampled_from(["stop", "clear_follow_ups", "cancel_timer"]),
        timer_id=st.sampled_from(TIMER_IDS),
    )
    def control(self, op: str, timer_id: str) -> None:
        self.driver.control(op, timer_id)

    @rule(quiet=st.booleans(), paused=st.booleans())
    def hold(self, quiet: bool, paused: bool) -> None:
        later = self.driver.now.replace(year=self.driver.now.year + 1)
        self.driver.quiet_until = later if quiet else None
        self.driver.is_paused = paused

    @rule()
    def takeover(self) -> None:
        """A crash: the uncommitted work is gone, the log is what there is."""
        state = self.driver.state
        if core.owes(state) is not None and state.attempt < 4:
            draft = core.begin_takeover(KEY, state, self.driver.moment(), POLICY)
            self.driver.commit(draft)

    # ------------------------------------------------------------ what always holds

    @invariant()
    def positions_and_ordinals_grow(self) -> None:
        turns = self.driver.turns
        assert [t.ordinal for t in turns] == list(range(1, len(turns) + 1))
        positions = [t.state.position for t in turns]
        assert positions == sorted(positions)

    @invariant()
    def effects_are_unique(self) -> None:
        ids = [e.id for t in self.driver.turns for e in t.effects]
        assert len(ids) == len(set(ids))

    @invariant()
    def sends_form_a_chain(self) -> None:
        previous = None
        for send in self.driver.sends:
            assert send.payload.previous == previous
            previous = send.id

    @invariant()
    def cap_and_cooldown_hold(self) -> None:
        consecutive, last = 0, None
        for turn in self.driver.turns:
            is_user = turn.event is not None and turn.event.type == "user_message"
            if is_user and turn.event.seq == turn.state.position:  # type: ignore[union-attr]
                consecutive, last = 0, None
            for effect in turn.effects:
                if isinstance(effect, SendMessage) and effect.payload.is_voidable:
                    assert consecutive < POLICY.max_consecutive
                    assert last is None or _ms(turn.created_at) - last >= POLICY.cooldown_ms
                    consecutive, last = consecutive + 1, _ms(turn.created_at)

    @invariant()
    def ordered_messages_stay_within_their_rate(self) -> None:
        times = [
            _ms(t.created_at)
            for t in self.driver.turns
            for e in t.effects
            if isinstance(e, SendMessage) and e.payload.is_autonomous and not e.payload.is_voidable
        ]
        for first, thirteenth in zip(times, times[12:], strict=False):
            assert thirteenth - first >= 3_600_000

    @invariant()
    def open_follow_ups_have_a_schedule_or_wait_in_the_queue(self) -> None:
        state = self.driver.state
        scheduled = self.driver.open_in_log()
        for timer_id, follow_up in state.follow_ups.items():
            assert (timer_id, follow_up.generation) in scheduled
        assert len(state.follow_ups) <= POLICY.follow_ups_max

    @invariant()
    def a_user_message_leaves_only_what_is_kept_or_newer(self) -> None:
        state = self.driver.state
        folded_at = [t.ordinal for t in self.driver.turns if t.state.fence == state.fence]
        for follow_up in state.follow_ups.values():
            assert follow_up.keep or state.fence == 0 or follow_up.generation >= folded_at[0]

    @invariant()
    def nothing_is_owed_and_every_message_is_answered_once(self) -> None:
        assert core.owes(self.driver.state) is None
        ended = [event for t in self.driver.turns for event in t.ended]
        waiting = {q.seq for q in self.driver.state.queue}
        loop = self.driver.state.loop
        first_seqs = {event.id: seq for seq, event in reversed(self.driver.events.items())}
        for event_id in self.users:
            if ended.count(event_id) != 1:
                is_open = loop is not None and loop.cause.id == event_id
                assert is_open or first_seqs[event_id] in waiting


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
