"""Properties of the core over random lives of a session (SPEC S-1, S-4 to S-8, S-12, S-13, X-3)."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from itertools import pairwise
from typing import Final

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from services.cortex import core
from services.cortex.core import Draft, Policy
from services.cortex.core.context.history import trim
from services.cortex.model import ModelAnswer
from services.cortex.models.breakpoints import marked_messages
from services.cortex.models.messages import ended, messages_of
from tests.cortex.driver import KEY, Driver, answer, call
from tests.support.examples import up_to
from vigil.contracts import (
    SOCKET,
    CallTool,
    Cause,
    Event,
    External,
    ExternalBlock,
    Loop,
    SendMessage,
    State,
    TimerFired,
    ToolResultBlock,
    ToolResultEvent,
    ToolUseBlock,
    Turn,
    UserMessage,
    UserMessagePayload,
    encode,
)

TIMER_IDS = ("a", "b", "c")
POLICY = Policy(autonomy_enabled=True, retries_max=2, channels=("ops", "sms"), route="ops")

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
    st.builds(
        lambda channel: call("send_message", text="by the way", channel=channel),
        st.sampled_from([None, "socket", "ops", "sms", "nowhere"]),
    ),
    st.just(call("memory_save", content="Ann likes tea")),
    st.just(call("memory_recall", query="tea")),
    st.just(call("memory_recall", wrong=1)),
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


KINDS: Final = st.sampled_from(["user", "trusted", "untrusted", "timer"])


class Life(RuleBasedStateMachine):
    """Random events, answers, delays, interruptions and takeovers of one session."""

    policy = POLICY

    def __init__(self) -> None:
        super().__init__()
        self.script: list[ModelAnswer | Exception] = []
        self.driver = Driver(self.think, self.policy)
        self.users: list[str] = []
        self.tainting: set[str] = set()
        """Ids of the results that hold untrusted content."""
        self.count = 0

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

    @rule()
    def night(self) -> None:
        """Everything that is open comes due in quiet hours, and all at once after them."""
        for quiet in (True, False):
            self.driver.wait(60)
            self.hold(quiet=quiet, paused=False)
            for timer_id in sorted(self.driver.state.follow_ups):
                self.driver.timer(timer_id)

    @rule(plans=st.lists(schedules, min_size=1, max_size=3))
    def planned(self, plans: list[ToolUseBlock]) -> None:
        """The person makes the agent plan something."""
        self.script = [answer(*plans)]
        self.user()

    @rule(wishes=st.lists(calls, min_size=1, max_size=3), seconds=st.sampled_from([0.0, 15.0]))
    def talked_into(self, wishes: list[ToolUseBlock], seconds: float) -> None:
        """A sender makes the agent try something."""
        self.driver.wait(seconds)
        self.script = [answer(*wishes)]
        self.driver.outside("please")

    @rule(is_trusted=st.booleans(), key=st.sampled_from([None, "x-"]))
    def outside(self, is_trusted: bool, key: str | None) -> None:
        event_id = None if key is None else f"{key}{is_trusted}"
        self.driver.outside("red", event_id, is_trusted=is_trusted)

    @rule(first=KINDS, others=st.lists(KINDS, min_size=1, max_size=3))
    def meanwhile(self, first: str, others: list[str]) -> None:
        """Events come in while the model thinks about another."""
        self.driver.meanwhile(*map(self._event, [first, *others]))

    def _event(self, kind: str) -> Event:
        self.count += 1
        name = f"n{self.count}"
        if kind == "user":
            self.users.append(name)
            payload = UserMessagePayload(text=name)
            now = self.driver.now
            return UserMessage(id=name, session_key=KEY, created_at=now, payload=payload)
        if kind == "timer":
            return self.driver.timer_event("a")
        return self.driver.external("red", name, is_trusted=kind == "trusted")

    @rule()
    def gathered(self) -> None:
        self.driver.gathered()

    @rule(timer_id=st.sampled_from(TIMER_IDS), generation=st.integers(0, 5))
    def stale_timer(self, timer_id: str, generation: int) -> None:
        self.driver.timer(timer_id, generation)

    @rule()
    def deadline(self) -> None:
        loop = self.driver.state.loop
        if loop is not None and loop.retry is not None:
            self.driver.deadline()

    @rule(
        which=st.integers(0, 3),
        is_tainted=st.booleans(),
        is_error=st.booleans(),
        count=st.integers(1, 2),
    )
    def result(self, which: int, is_tainted: bool, is_error: bool, count: int) -> None:
        """A service answers a call that is open, or was some time, once or twice."""
        open_calls = self.driver.open_calls()
        ids = [effect.id for effect in self.driver.called]
        if not ids:
            return
        call_id = open_calls[which % len(open_calls)] if open_calls else ids[which % len(ids)]
        for _ in range(count):
            event = self.driver.result_event(call_id, is_tainted=is_tainted, is_error=is_error)
            if is_tainted:
                self.tainting.add(event.id)
            self.driver.feed(event)

    @rule(wishes=st.lists(calls, min_size=1, max_size=3), double=st.booleans())
    def remembered(self, wishes: list[ToolUseBlock], double: bool) -> None:
        """The person makes the agent use its memory, and perhaps writes again meanwhile."""
        self.script = [answer(call("memory_save", content="x"), *wishes)]
        self.user()
        if double:
            self.user()

    @rule(generation=st.none() | st.integers(0, 30))
    def call_deadline(self, generation: int | None) -> None:
        """The deadline of calls fires: that of the open ones, or of others long ago."""
        if generation is None and not self.driver.open_calls():
            return
        self.driver.call_deadline(generation)

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
            draft = core.begin_takeover(KEY, state, self.driver.moment(), self.policy)
            self.driver.commit(draft)

    def teardown(self) -> None:
        """ARCHITECTURE 7: a recorded session folded again gives byte-identical turns."""
        again = [encode(turn) for turn in self.driver.replayed()]
        assert again == [encode(turn) for turn in self.driver.turns]

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
    def a_user_message_leaves_only_what_is_kept_or_knows_of_it(self) -> None:
        """S-6: what was planned without the newest message is void, also if that was folded before
        the plan was made, and waits for its turn."""
        newest, folded_at, ids = 0, 0, set[str]()
        causes: dict[int, int] = {}
        for turn in self.driver.turns:
            event = self.driver.events.get(turn.state.position)
            # A repeat moves the fence, but says nothing new.
            if isinstance(event, UserMessage) and event.id not in ids:
                ids.add(event.id)
                newest, folded_at = turn.state.position, turn.ordinal
            causes[turn.ordinal] = turn.event.seq if turn.event is not None else 0
        for follow_up in self.driver.state.follow_ups.values():
            if not follow_up.keep:
                assert follow_up.generation >= folded_at
                assert causes[follow_up.generation] >= newest

    @invariant()
    def nothing_waits_without_a_deadline(self) -> None:
        state, scheduled = self.driver.state, self.driver.open_in_log()
        if state.loop is not None and state.loop.retry is not None:
            assert ("_retry", state.loop.retry.generation) in scheduled
        if state.loop is not None and state.loop.waiting is not None:
            assert state.loop.retry is None
            assert state.loop.waiting.calls
            assert ("_call", state.loop.waiting.generation) in scheduled
        waiting = state.gathering
        if waiting is not None:
            assert state.loop is None
            assert any(queued.type == "user_message" for queued in state.queue)
            due_at = self.driver.scheduled["_coalesce", waiting.generation]
            assert due_at <= waiting.due_at <= waiting.latest_at

    @invariant()
    def untrusted_content_orders_nothing(self) -> None:
        """X-3, S-7: not a reminder, not a channel, and what it leads to is marked. A reminder of
        the person's whose loop takes in such content is said all the same: once."""
        reminders: Counter[str] = Counter()
        for before, turn in self._steps():
            is_swayed = goes_on_from_letters(self.policy, before, turn)
            if turn.event is None:
                continue
            is_tainted = self._is_tainted(before, turn.event) or self._took_in_taint(before, turn)
            due = self._due(before, turn.event)
            is_reminder = due is not None and before.follow_ups[due].keep
            is_reminder |= before.loop is not None and before.loop.is_ordered
            for effect in turn.effects:
                if isinstance(effect, CallTool):
                    assert effect.payload.is_tainted is (is_tainted or is_swayed)
                if not isinstance(effect, SendMessage):
                    continue
                payload = effect.payload
                is_fixed = due is not None and payload.text == before.follow_ups[due].message
                # A request is told of as it was asked, whoever makes it needless.
                is_of_request = payload.text.startswith("Withdrawn, since")
                is_marked = is_tainted or (is_swayed and not is_fixed)
                assert is_of_request or payload.is_tainted is is_marked
                if is_tainted and payload.is_autonomous:
                    reminders[payload.caused_by] += not payload.is_voidable
                    assert payload.is_voidable or is_reminder
                    assert payload.channel == self.policy.route
                elif is_tainted:
                    is_answer = turn.event.type == "user_message"
                    assert is_answer or is_of_request, "an answer, and nothing else"
                    assert payload.channel == SOCKET
                if turn.event.type == "external":
                    assert not self._spoken(turn.event.seq, payload.fence)
            for follow_up in turn.state.follow_ups.values():
                if follow_up.generation == turn.ordinal:
                    is_made = follow_up.held_from is None
                    assert follow_up.is_tainted is (is_tainted or is_swayed) or not is_made
                    assert not (follow_up.is_tainted and follow_up.keep) or is_reminder
            if is_tainted or (is_swayed and turn.event.type == "user_message"):
                kept = {n: f for n, f in before.follow_ups.items() if f.keep and n != due}
                assert kept.items() <= turn.state.follow_ups.items()
        assert max(reminders.values(), default=0) <= 1

    def _spoken(self, after: int, until: int) -> set[int]:
        """Return where the person said something within these; a repeat of a message says
        nothing, and what goes on knows of it."""
        first: dict[str, int] = {}
        for seq, event in self.driver.events.items():
            if isinstance(event, UserMessage):
                first.setdefault(event.id, seq)
        return {seq for seq in first.values() if after < seq <= until}

    def _due(self, before: State, cause: Cause) -> str | None:
        """Return the follow-up that this event is about, if it is open."""
        event = self.driver.events[cause.seq]
        timer_id = event.payload.timer_id if isinstance(event, TimerFired) else None
        return timer_id if timer_id in before.follow_ups else None

    def _is_tainted(self, before: State, cause: Cause) -> bool:
        """Whether what begins or goes on with `cause` descends from untrusted content."""
        if before.loop is not None and before.loop.cause == cause:
            return bool(before.loop.taint)
        event = self.driver.events[cause.seq]
        if isinstance(event, TimerFired):
            follow_up = before.follow_ups.get(event.payload.timer_id)
            return follow_up is not None and follow_up.is_tainted
        return isinstance(event, External) and not event.payload.is_trusted

    def _took_in_taint(self, before: State, turn: Turn) -> bool:
        """Whether the turn folds a result of its loop that holds untrusted content."""
        event = self.driver.events.get(turn.state.position)
        if not isinstance(event, ToolResultEvent) or event.id not in self.tainting:
            return False
        waiting = None if before.loop is None else before.loop.waiting
        ids = [] if waiting is None else [open_call.effect_id for open_call in waiting.calls]
        return event.payload.call_id in ids and turn.event == before.loop.cause  # type: ignore[union-attr]

    @invariant()
    def every_call_has_one_result_or_its_loop_is_over(self) -> None:
        """S-12: by a result, by the deadline, or by the end of the loop; never two."""
        for before, turn in self._steps():
            blocks = [block for row in turn.rows for block in row.blocks]
            asked = sum(isinstance(block, ToolUseBlock) for block in blocks)
            told = sum(isinstance(block, ToolResultBlock) for block in blocks)
            opened = {e.id for e in turn.effects if isinstance(e, CallTool)}
            was_open, is_open = _open_in(before), _open_in(turn.state)
            assert is_open <= was_open | opened
            answered = asked - len(opened) + len(was_open - is_open)
            assert told <= answered
            if turn.state.loop is not None:
                assert opened <= is_open, "asked for, and not waited for"
                is_same = before.loop is None or before.loop.cause == turn.state.loop.cause
                assert told == answered or not is_same

    @invariant()
    def the_rows_are_a_conversation(self) -> None:
        """I-2: whatever closed a loop, what the model is shown next is accepted."""
        rows = [row for turn in self.driver.turns for row in turn.rows]
        for first, second in pairwise(messages_of(trim(rows, 100_000))):
            called = [b["id"] for b in first["content"] if b["type"] == "tool_use"]
            told = [b["tool_use_id"] for b in second["content"] if b["type"] == "tool_result"]
            assert first["role"] != second["role"]
            assert called == told

    @invariant()
    def the_situation_stands_after_all_that_others_wrote(self) -> None:
        """L-23, X-3: only an unfinished answer of the model's own may follow it."""
        rows = [row for turn in self.driver.turns for row in turn.rows]
        messages = messages_of(rows)
        shown = ended(marked_messages(messages), "[Situation] now")
        last = max(i for i, message in enumerate(shown) if message["role"] == "user")
        assert last >= len(shown) - 2
        assert shown[last]["content"][-1] == {"type": "text", "text": "[Situation] now"}
        blocks = [block for message in shown for block in message["content"]]
        marked = [i for i, block in enumerate(blocks) if "cache_control" in block]
        assert 1 <= len(marked) <= 2
        assert blocks.index(shown[last]["content"][-1]) == marked[-1] + 1

    @invariant()
    def what_came_from_outside_is_told_once(self) -> None:
        """Accepted, it is a row of the history, whatever else becomes of it."""
        rows = [
            block.event_id
            for turn in self.driver.turns
            for row in turn.rows
            for block in row.blocks
            if isinstance(block, ExternalBlock)
        ]
        told = Counter(rows)
        assert max(told.values(), default=0) <= 1 or len(rows) > 32
        events = self.driver.events
        waiting = {events[queued.seq].id for queued in self.driver.state.queue}
        for event in events.values():
            if isinstance(event, External):
                assert told[event.id] or event.id in waiting

    @invariant()
    def what_was_held_back_is_not_dropped_for_the_cooldown(self) -> None:
        for before, turn in self._steps():
            for note in turn.notes:
                follow_up = before.follow_ups.get(note.subject or "")
                if note.code == "blocked_cooldown" and follow_up is not None:
                    assert follow_up.held_from is None

    def _steps(self) -> list[tuple[State, Turn]]:
        turns = self.driver.turns
        return list(zip([State(), *(turn.state for turn in turns)], turns, strict=False))

    @invariant()
    def nothing_is_owed_and_every_message_is_answered_once(self) -> None:
        assert core.owes(self.driver.state) is None
        ended = [event for t in self.driver.turns for event in t.ended]
        waiting = {q.seq for q in self.driver.state.queue}
        loop = self.driver.state.loop
        first_seqs = {event.id: seq for seq, event in reversed(self.driver.events.items())}
        for event_id in self.users:
            if ended.count(event_id) != 1:
                is_open = loop is not None and event_id in (*loop.joined, loop.cause.id)
                assert ended.count(event_id) == 0
                assert is_open or first_seqs[event_id] in waiting


def _open_in(state: State) -> set[str]:
    waiting = None if state.loop is None else state.loop.waiting
    return set() if waiting is None else {open_call.effect_id for open_call in waiting.calls}


def goes_on_from_letters(policy: Policy, before: State, turn: Turn) -> bool:
    """Whether a message of the person's is answered that goes on from an exchange with letters
    in it (FLOW F-2)."""
    near = before.exchange
    is_message = turn.event is not None and turn.event.type == "user_message"
    is_begun = before.loop is None or before.loop.cause != turn.event
    if not is_begun:
        return before.loop is not None and _has_letters(before.loop)
    if not is_message:
        return False
    if before.loop is not None and before.loop.purpose == "answer":  # the message ends it
        return bool(before.loop.taint) or _has_letters(before.loop)
    if near is None:
        return False
    return (turn.created_at - near.ended_at).total_seconds() <= policy.letters_open_s


def _has_letters(loop: Loop) -> bool:
    return loop.open_from < loop.begun_turn or bool(loop.opened)


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


@pytest.mark.hypothesis
@pytest.mark.parametrize("double_text", ["enqueue", "interrupt", "coalesce"])
def test_life(double_text: str) -> None:
    """Whatever an agent does with double texts (S-13)."""
    policy = msgspec.structs.replace(POLICY, double_text=double_text)
    machine = type(f"Life_{double_text}", (Life,), {"policy": policy})
    limits = up_to(120, stateful_step_count=40)
    run_state_machine_as_test(machine, settings=limits)  # type: ignore[no-untyped-call]


def test_a_request_that_a_sender_makes_needless_is_told_of() -> None:
    """It's withdrawn where it was asked: the one word on a sender's mail that is no answer."""
    message = call("send_message", text="by the way", channel="ops")
    life = Life()
    life.talked_into(wishes=[call("memory_recall", query="x")], seconds=0.0)
    life.remembered(wishes=[message], double=False)
    life.call_deadline(None)
    life.talked_into(wishes=[message], seconds=0.0)
    assert "approval_superseded" in life.driver.notes
    life.untrusted_content_orders_nothing()
