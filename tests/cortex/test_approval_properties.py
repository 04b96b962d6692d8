"""Properties of requests to a person over random lives of a session (SPEC X-2, X-3)."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from services.cortex.core import Draft, Policy
from services.cortex.core.draft.kinds import profile_of
from services.cortex.core.pending.requests import digest_of
from services.cortex.model import ModelAnswer
from tests.cortex.driver import KEY, Driver, answer, call
from tests.cortex.test_core_approvals import TOOLS
from tests.cortex.test_core_properties import goes_on_from_letters
from tests.support.examples import up_to
from vigil.contracts import (
    Approval,
    CallTool,
    Control,
    ControlPayload,
    ExternalBlock,
    Start,
    State,
    TaskBlock,
    TellParent,
    Turn,
)

NAMES: Final = sorted([*TOOLS, "ask_user", "memory_recall", "no_such_tool"])
ALLOWED: Final = {
    "off": set[str](),
    "observe": {"read"},
    "suggest": {"read", "write"},
    "act": {"read", "write", "external"},
}
"""Once more what `core.tools.authority` says, by hand: a property must not ask what it checks."""
uses = st.builds(
    lambda name, value: call(
        name, **{{"ask_user": "question", "memory_recall": "query"}.get(name, "command"): value}
    ),
    st.sampled_from(NAMES),
    st.sampled_from(["a", "b"]),
)
answers = st.one_of(
    st.just(answer("Hello.")),
    st.builds(lambda use: answer(*use), st.lists(uses, min_size=1, max_size=3)),
    st.just(TimeoutError("529")),
)
verdicts = st.sampled_from(["accept", "accept", "edit", "answer", "reject"])


class Life(RuleBasedStateMachine):
    """Random calls, verdicts (right, wrong, late, repeated), results, deadlines, messages."""

    policy = Policy(autonomy_enabled=True, cooldown_ms=0, max_consecutive=99, calls_max=6)

    def __init__(self) -> None:
        super().__init__()
        self.script: list[ModelAnswer | Exception] = []
        self.driver = Driver(self.think, self.policy)
        self.driver.tools = dict(TOOLS)
        self.tainting: list[tuple[int, int]] = []
        """From which turn on untrusted content had come into which loop."""
        self.begin()

    def begin(self) -> None:
        pass

    def think(self, draft: Draft) -> ModelAnswer | Exception:
        return self.script.pop() if self.script else answer("Hello.")

    # ------------------------------------------------------------ what happens

    @rule(script=st.lists(answers, max_size=3))
    def plan(self, script: list[ModelAnswer | Exception]) -> None:
        self.script = script

    @rule()
    def user(self) -> None:
        self.driver.user()

    @rule(is_trusted=st.booleans())
    def outside(self, is_trusted: bool) -> None:
        self.driver.outside("red", is_trusted=is_trusted)

    @rule(is_tainted=st.booleans(), is_known=st.booleans())
    def result(self, is_tainted: bool, is_known: bool) -> None:
        """A result of what a loop waits for, or of what runs beside the conversation."""
        state, before = self.driver.state, len(self.driver.turns)
        known = [*self.driver.open_calls(), *state.tasks]
        call_id = known[0] if known and is_known else "nothing"
        was_open = any(
            one.effect_id == call_id and one.service != "person"
            for one in (state.loop.waiting.calls if state.loop and state.loop.waiting else ())
        )
        self.driver.result(call_id, "text", is_tainted=is_tainted)
        if is_tainted and was_open and state.loop is not None:
            self.tainting.append((before, state.loop.cause.seq))

    @rule(
        verdict=verdicts,
        which=st.integers(0, 5),
        is_right=st.booleans(),
        is_ann=st.sampled_from([True, True, False]),
    )
    def decide(self, verdict: str, which: int, is_right: bool, is_ann: bool) -> None:
        """A verdict on any request that there ever was, open or not."""
        asked = [one for one in self.driver.board if one.state == "open"]
        if not asked:
            return
        approval = asked[which % len(asked)]
        of: dict[str, Any] = {"digest": approval.digest if is_right else "0" * 64}
        if verdict == "edit":
            of["input"] = {"command": "edited"}
        if verdict in ("answer", "reject"):
            of["text"] = "because"
        self.driver.decide(verdict, approval.id, by="ann" if is_ann else "ben", **of)

    @rule(which=st.integers(0, 5))
    def expire(self, which: int) -> None:
        asked = [one for one in self.driver.board if one.state == "open"]
        if asked:
            self.driver.approval_deadline(asked[which % len(asked)])

    @rule()
    def give_up(self) -> None:
        loop = self.driver.state.loop
        if loop is not None and loop.waiting is not None and loop.waiting.generation:
            self.driver.call_deadline()
        elif loop is not None and loop.retry is not None:
            self.driver.deadline()

    @rule()
    def stop(self) -> None:
        self.driver.control("stop")

    @rule(seconds=st.sampled_from([1.0, 3600.0, 86_400.0]))
    def wait(self, seconds: float) -> None:
        self.driver.wait(seconds)

    @rule()
    def become_worse(self) -> None:
        """A tool changes while a request for it is open."""
        worse = msgspec.structs.replace(TOOLS["shell"], risk="destructive")
        self.driver.tools = {**self.driver.tools, "shell": worse}

    # ------------------------------------------------------------ what holds

    def _steps(self) -> list[tuple[State, Turn]]:
        turns = self.driver.turns
        states = [State(), *(turn.state for turn in turns)]
        return list(zip(states, turns, strict=False))

    @invariant()
    def nothing_runs_beyond_what_it_may(self) -> None:
        """X-2, X-3: or by a request that was accepted with the same digest, once."""
        used: set[str] = set()
        swayed: set[int] = set()
        for index, (before, turn) in enumerate(self._steps()):
            loop = 0 if turn.event is None else turn.event.seq
            # What came in is a letter once its loop is over, and sways what the person says next.
            if (
                _brings_outside(turn)
                or goes_on_from_letters(self.policy, before, turn)
                or any(index >= at and loop == one for at, one in self.tainting)
            ):
                swayed.add(loop)
            is_outside = loop in swayed
            for effect in turn.effects:
                if not isinstance(effect, CallTool) or effect.payload.service != "executor":
                    continue
                if effect.payload.approval_id:
                    assert effect.payload.approval_id not in used
                    used.add(effect.payload.approval_id)
                    self._was_accepted(effect, turn)
                else:
                    self._is_allowed(effect, before, turn, is_outside=is_outside)

    def _is_allowed(self, effect: CallTool, before: State, turn: Turn, *, is_outside: bool) -> None:
        loop = turn.state.loop or before.loop
        assert loop is not None
        risk = TOOLS[effect.payload.tool].risk
        assert effect.payload.risk in (risk, "destructive")
        if loop.is_direct or loop.is_ordered:
            allowed, swayed = ALLOWED["act"], {"read", "write"}
        else:
            allowed, swayed = ALLOWED[self.policy.authority], {"read"}
        assert effect.payload.risk in (allowed & swayed if is_outside else allowed)

    def _was_accepted(self, effect: CallTool, turn: Turn) -> None:
        id_ = effect.payload.approval_id
        closed = [one for one in self.driver.board if one.id == id_ and one.state != "open"]
        (approval,) = closed
        assert approval.state in ("accepted", "edited")
        assert approval.call_id == effect.id
        assert effect.payload.tool == approval.tool
        given = approval.input if approval.edited is None else approval.edited
        assert effect.payload.input == given
        assert approval.digest == digest_of(KEY, approval.tool, given=approval.input)
        verdicts = [
            event.payload.decision
            for event in self.driver.events.values()
            if isinstance(event, Control) and event.payload.decision is not None
        ]
        assert any(
            one.approval_id == id_ and one.digest == approval.digest and one.by == "ann"
            and one.verdict in ("accept", "edit") and (one.input or approval.input) == given
            for one in verdicts
        )  # fmt: skip

    @invariant()
    def each_request_ends_once(self) -> None:
        open_: dict[str, Approval] = {}
        ended: set[str] = set()
        for entry in self.driver.board:
            if entry.state == "open":
                assert entry.id not in open_
                assert entry.id not in ended
                open_[entry.id] = entry
            else:
                assert entry.id not in ended
                open_.pop(entry.id)
                ended.add(entry.id)
        assert open_ == self.driver.state.approvals

    @invariant()
    def nothing_waits_for_ever(self) -> None:
        state, scheduled = self.driver.state, self.driver.open_in_log()
        for approval in state.approvals.values():
            assert (f"_approval-{approval.id}", approval.generation) in scheduled
        for task_id, task in state.tasks.items():
            is_kept = any(queued.seq == task.told_seq for queued in state.queue)
            is_kept |= state.loop is not None and state.loop.task_id == task_id
            assert is_kept or (f"_child-{task_id}", task.generation) in scheduled
        waiting = None if state.loop is None else state.loop.waiting
        for one in () if waiting is None else waiting.calls:
            if one.service == "person":
                assert one.effect_id in state.approvals
            else:
                assert waiting is not None
                assert ("_call", waiting.generation) in scheduled

    def teardown(self) -> None:
        """Let every deadline come: then nothing is open any more."""
        self.script = []
        for _ in range(30):
            self.driver.wait(90_000)
            self.give_up()
            for approval in list(self.driver.state.approvals.values()):
                self.driver.approval_deadline(approval)
            for task_id, task in list(self.driver.state.tasks.items()):
                if not task.told_seq:
                    self.driver.result(task_id, "text")
        assert self.driver.state.approvals == {}
        assert self.driver.state.loop is None
        assert self.driver.state.queue == ()
        assert self.driver.state.tasks == {}
        self.nothing_runs_beyond_what_it_may()
        assert self.driver.replayed() == self.driver.turns


def _brings_outside(turn: Turn) -> bool:
    blocks = [block for row in turn.rows for block in row.blocks]
    return any(
        (isinstance(block, ExternalBlock) and not block.event.is_trusted)
        or (isinstance(block, TaskBlock) and block.is_tainted)
        for block in blocks
    )


class Alone(Life):
    """The same, with what the agent does by itself trusted less, and more."""

    policy = Policy(
        autonomy_enabled=True, cooldown_ms=0, max_consecutive=99, calls_max=6, authority="act"
    )


class Worker(Life):
    """A session that nobody talks to, and that waits for what it asks."""

    policy = Policy(profile=profile_of("worker"), calls_max=20)

    def begin(self) -> None:
        start = Start(prompt="do it", parent="ann:vigil:t0", call_id="c0", depth=1, is_ordered=True)
        self.script = [answer(call("box__wipe", command="a"), call("ask_user", question="b"))]
        payload = ControlPayload(op="start", start=start)
        envelope = self.driver._envelope()
        self.driver.feed(Control(payload=payload, **envelope))

    @invariant()
    def the_parent_hears_of_every_request(self) -> None:
        told = [
            effect.payload.content
            for turn in self.driver.turns
            for effect in turn.effects
            if isinstance(effect, TellParent) and effect.payload.state == "asking"
        ]
        for approval in self.driver.board:
            assert any(approval.id in content for content in told)


@pytest.mark.hypothesis
@pytest.mark.parametrize("life", [Life, Alone, Worker])
def test_whatever_happens(life: type[Life]) -> None:
    """X-2, X-3: no call beyond the authority without leave; one end for each; nothing for ever."""
    run_state_machine_as_test(life, settings=up_to(60, stateful_step_count=20))


def test_a_person_may_have_things_written_after_what_a_sender_said() -> None:
    """As the table of `core.tools.authority` has it: their order is not lent to the sender."""
    life = Alone()
    life.outside(is_trusted=False)
    life.plan([answer(call("write_file", command="a"))])
    life.user()
    effects = [one for turn in life.driver.turns for one in turn.effects]
    assert [one.payload.tool for one in effects if isinstance(one, CallTool)] == ["write_file"]
    life.nothing_runs_beyond_what_it_may()
