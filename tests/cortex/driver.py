"""Drives the pure core like the engine does, without a broker: for properties and scenarios."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from services.cortex import core
from services.cortex.core import Draft, Moment, Policy
from services.cortex.core.draft.policy import Hours
from services.cortex.history import History
from services.cortex.model import ModelAnswer, ModelError, StopReason
from vigil.contracts import (
    Approval,
    Block,
    BoardChange,
    CallTool,
    CancelTimer,
    Control,
    ControlPayload,
    Decision,
    Event,
    External,
    ExternalPayload,
    ScheduleTimer,
    SendMessage,
    State,
    TextBlock,
    TimerFired,
    TimerPayload,
    ToldEvent,
    ToldPayload,
    Tool,
    ToolResultEvent,
    ToolResultPayload,
    ToolUseBlock,
    Turn,
    Usage,
    UserMessage,
    UserMessagePayload,
    decode_turn,
    encode,
)
from vigil.contracts.base import NEVER
from vigil.goals.lifecycle import ReadGoal
from vigil.grants.rule import Standing
from vigil.tasks.lifecycle import ReadTask

KEY = "ann:vigil:t1"
START = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)

Step = Callable[[Draft, State], Draft]
"""A decision about a draft; the first one of a turn makes it, of the state before."""
Brain = Callable[[Draft], ModelAnswer | Exception]


def answer(*blocks: Block | str, stop: StopReason | None = None) -> ModelAnswer:
    """A model's answer from text and tool calls."""
    made = tuple(TextBlock(text=b) if isinstance(b, str) else b for b in blocks)
    has_call = any(isinstance(b, ToolUseBlock) for b in made)
    return ModelAnswer(
        blocks=made,
        stop_reason=stop or ("tool_use" if has_call else "end_turn"),
        usage=Usage(model="test", input_tokens=1, output_tokens=1),
    )


def call(name: str, **arguments: Any) -> ToolUseBlock:
    return ToolUseBlock(id=f"call-{name}", name=name, input=arguments)


def _conclude(draft: Draft, result: ModelAnswer | Exception, moment: Moment) -> Draft:
    draft.moment = moment
    if isinstance(result, Exception):
        is_of_model = not isinstance(result, ValueError)
        known = result if isinstance(result, ModelError) else None
        is_unasked = known is not None and known.is_unasked
        is_retryable = is_unasked or isinstance(result, TimeoutError)
        core.fail(
            draft,
            str(result),
            is_retryable=is_retryable,
            retry_after_s=None if known is None else known.retry_after_s,
            budget_at=None if known is None else known.budget_at,
            is_of_model=is_of_model,
            is_unasked=is_unasked,
        )
    else:
        assert draft.profile.conclude is not None
        core.answered(draft, is_fallback=result.is_fallback)
        draft.profile.conclude(draft, result)
    if isinstance(result, ModelAnswer | ModelError):
        core.announce(draft, result.notices)
    return draft


class Driver:
    """A session's log in memory: stores events, folds them, asks `brain`, keeps every turn."""

    def __init__(self, brain: Brain | None = None, policy: Policy | None = None) -> None:
        self.key = KEY
        self.now = START
        self.policy = policy or Policy(autonomy_enabled=True)
        self.brain: Brain = brain or (lambda _: answer("Hello."))
        self.state = State()
        self.turns: list[Turn] = []
        self.events: dict[int, Event] = {}
        self.is_paused = False
        self.history = History(80, 200_000)
        self.grants: tuple[Standing, ...] = ()
        self.tasks: tuple[ReadTask, ...] = ()
        self.goals: tuple[ReadGoal, ...] = ()
        """What is on the board."""
        self.named: tuple[Approval, ...] = ()
        """Requests of other sessions that the message names."""
        self.asked_before: tuple[str, ...] = ()
        self.tools: dict[str, Tool] = {}
        """What the executor offers."""
        self.quiet_until: datetime | None = None
        self.paused_until: datetime | None = None
        self.hours_at = NEVER
        self.hours = Hours()
        self._seq = 0
        self._making: dict[Draft, list[Step]] = {}
        self._made: list[list[Step] | Turn] = []
        """How each turn was made, to make it again; or the turn, if a test made it by itself."""

    # ------------------------------------------------------------ time and events

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def store(self, event: Event) -> int:
        """Store an event; its sequence is strictly growing, with gaps as in a shared stream."""
        self._seq += 3
        self.events[self._seq] = event
        return self._seq

    def _envelope(self) -> dict[str, Any]:
        return {"id": f"e{self._seq + 3}", "session_key": self.key, "created_at": self.now}

    def user(
        self, text: str = "hi", *, event_id: str | None = None, channel: str = "", **of: Any
    ) -> list[Turn]:
        fields = self._envelope()
        if event_id is not None:
            fields["id"] = event_id
        is_keyed = event_id is not None
        payload = UserMessagePayload(text=text, is_keyed=is_keyed, channel=channel, **of)
        return self.feed(UserMessage(payload=payload, **fields))

    def message(self, text: str) -> UserMessage:
        """A message that is yet to come in; its id is its text."""
        payload = UserMessagePayload(text=text)
        return UserMessage(id=text, session_key=self.key, created_at=self.now, payload=payload)

    def timer(self, timer_id: str, generation: int | None = None) -> list[Turn]:
        """Fire a timer, by default in its open generation."""
        return self.feed(self.timer_event(timer_id, generation))

    def timer_event(self, timer_id: str, generation: int | None = None) -> TimerFired:
        follow_up = self.state.follow_ups.get(timer_id)
        if generation is None:
            generation = follow_up.generation if follow_up else 0
        fire_at = follow_up.fire_at if follow_up else self.now
        payload = TimerPayload(timer_id=timer_id, generation=generation, fire_at=fire_at)
        return TimerFired(payload=payload, **self._envelope())

    def deadline(self) -> list[Turn]:
        """Fire the deadline of the open loop's retry."""
        loop = self.state.loop
        assert loop is not None
        assert loop.retry is not None
        payload = TimerPayload(
            timer_id="_retry",
            generation=loop.retry.generation,
            fire_at=loop.retry.due_at,
            kind="deadline",
        )
        return self.feed(TimerFired(payload=payload, **self._envelope()))

    def result(self, call_id: str | None = None, content: str = "Saved.", **of: Any) -> list[Turn]:
        """Let the result of a call come in: by default of the first one that is open."""
        call_id = self.open_calls()[0] if call_id is None else call_id
        return self.feed(self.result_event(call_id, content, **of))

    def result_event(self, call_id: str, content: str = "Saved.", **of: Any) -> ToolResultEvent:
        payload = ToolResultPayload(call_id=call_id, content=content, **of)
        return ToolResultEvent(payload=payload, **self._envelope())

    def open_calls(self) -> list[str]:
        """The effect ids of the calls that the open loop waits for."""
        loop = self.state.loop
        waiting = None if loop is None else loop.waiting
        return [] if waiting is None else [open_call.effect_id for open_call in waiting.calls]

    def call_deadline(self, generation: int | None = None) -> list[Turn]:
        """Fire the deadline of the calls that the open loop waits for."""
        if generation is None:
            assert self.state.loop is not None
            assert self.state.loop.waiting is not None
            generation = self.state.loop.waiting.generation
        payload = TimerPayload(
            timer_id="_call", generation=generation, fire_at=self.now, kind="deadline"
        )
        return self.feed(TimerFired(payload=payload, **self._envelope()))

    def decide(self, verdict: Any, approval_id: str = "", **of: Any) -> list[Turn]:
        """Let the person decide on a request, by default the first one that is open."""
        return self.feed(self.decision(verdict, approval_id, **of))

    def decision(self, verdict: Any, approval_id: str = "", **of: Any) -> Control:
        approval_id = approval_id or next(iter(self.state.approvals), "none")
        approval = self.state.approvals.get(approval_id)
        of.setdefault("digest", "" if approval is None else approval.digest)
        of.setdefault("by", "ann")
        decision = Decision(approval_id=approval_id, verdict=verdict, **of)
        payload = ControlPayload(op="approval", decision=decision)
        return Control(payload=payload, **self._envelope())

    def approval_deadline(self, approval: Approval) -> list[Turn]:
        """Fire the deadline of a request."""
        payload = TimerPayload(
            timer_id=f"_approval-{approval.id}",
            generation=approval.generation,
            fire_at=approval.expires_at,
            kind="deadline",
        )
        return self.feed(TimerFired(payload=payload, **self._envelope()))

    def control(self, op: Any, timer_id: str | None = None) -> list[Turn]:
        payload = ControlPayload(op=op, timer_id=timer_id)
        return self.feed(Control(payload=payload, **self._envelope()))

    def outside(self, content: str = "red", event_id: str | None = None, **of: Any) -> list[Turn]:
        """Let an event from outside come in."""
        return self.feed(self.external(content, event_id, **of))

    def external(self, content: str = "red", event_id: str | None = None, **of: Any) -> External:
        fields = self._envelope()
        if event_id is not None:
            fields["id"] = event_id
        return External(payload=ExternalPayload(source="hook:ci", content=content, **of), **fields)

    def told(self, text: str = "It is done.", **of: Any) -> list[Turn]:
        """Let another session of the agent have something said."""
        return self.feed(self.told_event(text, **of))

    def told_event(self, text: str = "It is done.", **of: Any) -> ToldEvent:
        payload = ToldPayload(origin="ann:vigil:_planner-1f", text=text, **of)
        return ToldEvent(payload=payload, **self._envelope())

    def digest(self) -> list[Turn]:
        """Let the deadline of the digest come."""
        digest = self.state.digest
        assert digest is not None
        self.now = max(self.now, digest.due_at)
        payload = TimerPayload(
            timer_id="_digest",
            generation=digest.generation,
            fire_at=digest.due_at,
            kind="deadline",
        )
        return self.feed(TimerFired(payload=payload, **self._envelope()))

    def gathered(self) -> list[Turn]:
        """Fire the deadlines of messages that wait for more, until they are answered."""
        before = len(self.turns)
        while (waiting := self.state.gathering) is not None:
            self.now = max(self.now, self.scheduled["_coalesce", waiting.generation])
            payload = TimerPayload(
                timer_id="_coalesce",
                generation=waiting.generation,
                fire_at=self.scheduled["_coalesce", waiting.generation],
                kind="deadline",
            )
            self.feed(TimerFired(payload=payload, **self._envelope()))
        return self.turns[before:]

    def meanwhile(self, first: Event, *others: Event) -> list[Turn]:
        """Process `first`, with the others coming in while the model thinks about it."""
        before = len(self.turns)
        self._begin(self.fold(first))
        for event in others:
            self._begin(self.fold(event))
        self.settle()
        return self.turns[before:]

    def _begin(self, draft: Draft) -> None:
        """Commit without asking the model, as the engine does when something else comes in."""
        self.commit(draft)
        while core.owes(self.state) == "take":
            self.commit(self._take())

    # ------------------------------------------------------------ folding

    def moment(self) -> Moment:
        return Moment(
            now=self.now,
            quiet_until=self.quiet_until,
            paused_until=self.paused_until,
            hours_at=self.hours_at,
            hours=self.hours,
            is_paused=self.is_paused,
            tools=self.tools,
            grants=self.grants,
            tasks=self.tasks,
            goals=self.goals,
            approvals=self.named,
            asked=self.asked_before,
            is_history_tainted=self.history.is_tainted,
        )

    def fold(self, event: Event) -> Draft:
        """Fold without concluding: what the engine has while the model thinks."""
        seq, moment = self.store(event), self.moment()
        return self._make(lambda s: core.fold(self.key, s, seq, event, moment, self.policy))

    def _take(self) -> Draft:
        events = [self.events[q.seq] for q in core.head(self.state, self.policy)]
        moment = self.moment()
        return self._make(lambda s: core.take(self.key, s, events, moment, self.policy))

    def _make(self, make: Callable[[State], Draft]) -> Draft:
        draft = make(self.state)
        self._making[draft] = [lambda _, state: make(state)]
        return draft

    def feed(self, event: Event) -> list[Turn]:
        """Store and process an event, and all that is then owed; returns the new turns."""
        before = len(self.turns)
        self.finish(self.fold(event))
        self.settle()
        return self.turns[before:]

    def settle(self) -> None:
        while (owed := core.owes(self.state)) is not None:
            if owed == "call":
                moment = self.moment()
                self.finish(self._make(lambda s, m=moment: Draft(self.key, s, m, self.policy)))  # type: ignore[misc]
            else:
                self.finish(self._take())

    def finish(self, draft: Draft) -> None:
        """Ask the brain if the draft wants it, then commit."""
        if draft.wants_call:
            draft.moment = self.moment()
            result = self.brain(draft)
            moment = draft.moment
            _conclude(draft, result, moment)
            steps = self._making.get(draft)
            if steps is not None:
                steps.append(lambda d, _: _conclude(d, result, moment))
        self.commit(draft)

    def commit(self, draft: Draft) -> Turn:
        turn = draft.finish(f"turn-{len(self.turns) + 1}", history_from=1)
        # What is stored is what counts: the turn as read back must be the same.
        assert decode_turn(encode(turn)) == turn
        self.turns.append(turn)
        self.state = turn.state
        self.history.add(turn.ordinal, turn)
        self._made.append(self._making.pop(draft, turn))
        return turn

    def replayed(self) -> list[Turn]:
        """Make every turn again, from the first state on."""
        state, turns = State(), list[Turn]()
        for made in self._made:
            if isinstance(made, Turn):
                turn = made
            else:
                draft = made[0](Draft(self.key, state, self.moment(), self.policy), state)
                for step in made[1:]:
                    draft = step(draft, state)
                turn = draft.finish(f"turn-{len(turns) + 1}", history_from=1)
            turns.append(turn)
            state = turn.state
        return turns

    # ------------------------------------------------------------ what came of it

    @property
    def sends(self) -> list[SendMessage]:
        return [e for turn in self.turns for e in turn.effects if isinstance(e, SendMessage)]

    @property
    def called(self) -> list[CallTool]:
        return [e for turn in self.turns for e in turn.effects if isinstance(e, CallTool)]

    @property
    def texts(self) -> list[str]:
        return [send.payload.text for send in self.sends]

    @property
    def notes(self) -> list[str]:
        return [note.code for turn in self.turns for note in turn.notes]

    @property
    def scheduled(self) -> dict[tuple[str, int], datetime]:
        """When each timer that a turn asked for is due."""
        return {
            (e.payload.timer_id, e.payload.generation): e.payload.fire_at
            for turn in self.turns
            for e in turn.effects
            if isinstance(e, ScheduleTimer)
        }

    @property
    def board(self) -> list[Approval]:
        """The requests as they came onto the board, one entry for each change."""
        changes = [e for turn in self.turns for e in turn.effects if isinstance(e, BoardChange)]
        entities = [change.payload.entity for change in changes]
        return [entity for entity in entities if isinstance(entity, Approval)]

    def open_in_log(self) -> set[tuple[str, int]]:
        """Timers that the turns scheduled and did not cancel, whoever fired them."""
        pairs: set[tuple[str, int]] = set()
        for turn in self.turns:
            for effect in turn.effects:
                if isinstance(effect, ScheduleTimer):
                    pairs.add((effect.payload.timer_id, effect.payload.generation))
                elif isinstance(effect, CancelTimer):
                    pairs.discard((effect.payload.timer_id, effect.payload.generation))
        return pairs
