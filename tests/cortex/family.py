"""A family of sessions without a broker: each folds by the pure core, and what one asks of another
is carried by hand, in any order, late or twice. For scenarios and properties of children.

It does what the executor promises: a start is stored only as a session's first event, an end is
told as a result, a word as a status.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from services.cortex import core
from services.cortex.core import Draft, Moment, Policy
from services.cortex.core.draft.kinds import profile_of
from services.cortex.model import ModelAnswer, ModelError
from tests.cortex.driver import answer
from vigil.contracts import (
    CancelCall,
    CancelTimer,
    ChildStatus,
    Control,
    ControlPayload,
    Effect,
    Event,
    ScheduleTimer,
    SpawnSession,
    Start,
    State,
    TellParent,
    TimerFired,
    TimerPayload,
    ToolResultEvent,
    ToolResultPayload,
    Turn,
    UserMessage,
    UserMessagePayload,
    decode_turn,
    encode,
)
from vigil.subjects import SessionKey

ROOT: Final = SessionKey("ann", "vigil", "t1")
Brain = Callable[[str, Draft], ModelAnswer | Exception]


class Member:
    """One session: its log, and the state after it."""

    def __init__(self, key: SessionKey, policy: Policy) -> None:
        self.key = key
        self.policy = policy
        self.state = State()
        self.events: list[tuple[int, Event]] = []
        self.turns: list[Turn] = []
        self.timers: dict[tuple[str, int], TimerPayload] = {}


class Family:
    """All sessions that descend from one conversation."""

    def __init__(self, brain: Brain | None = None, **limits: Any) -> None:
        self.brain: Brain = brain or (lambda key, draft: answer("Done."))
        self.now = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
        self.limits: dict[str, Any] = {
            "autonomy_enabled": True,
            "timeouts_s": {"branch": 60.0, "worker": 300.0},
        }
        self.calls_max: dict[str, int] = {}
        """Model calls of a kind, where they aren't as usual."""
        self.limits |= limits
        self.members: dict[str, Member] = {}
        self.pending: list[tuple[SessionKey, Event]] = []
        """What is on its way, the oldest first."""
        self.moment_of: dict[str, Any] = {}
        self._seq = 0
        self._ids = 0

    # ------------------------------------------------------------ who there is

    @property
    def root(self) -> Member:
        return self.member(ROOT)

    def member(self, key: SessionKey | str) -> Member:
        """Return a session; one that nobody heard of is empty."""
        key = SessionKey.parse(key) if isinstance(key, str) else key
        if str(key) not in self.members:
            policy = Policy(profile=profile_of(key.kind), **self.limits)
            calls_max = self.calls_max.get(key.kind, policy.profile.calls_max)
            policy = msgspec.structs.replace(policy, calls_max=calls_max, steps_of=self.calls_max)
            self.members[str(key)] = Member(key, policy)
        return self.members[str(key)]

    @property
    def children(self) -> list[Member]:
        return [m for m in self.members.values() if m.key.is_system]

    def of_kind(self, kind: str) -> list[Member]:
        return [m for m in self.members.values() if m.key.kind == kind]

    def effects(self, kind: type[Effect] | Any = object) -> list[Any]:
        """Return the effects of that type, of all sessions."""
        turns = [turn for member in self.members.values() for turn in member.turns]
        return [e for turn in turns for e in turn.effects if isinstance(e, kind)]

    # ------------------------------------------------------------ what comes in

    def say(self, text: str = "hi") -> None:
        self.put(ROOT, self.message(text))

    def message(self, text: str) -> UserMessage:
        return UserMessage(payload=UserMessagePayload(text=text), **self._envelope(ROOT))

    def control(self, key: SessionKey, **payload: Any) -> None:
        """Let a control event come in at once."""
        self.put(key, self._control(key, **payload))

    def _control(self, key: SessionKey, **payload: Any) -> Control:
        return Control(payload=ControlPayload(**payload), **self._envelope(key))

    def _envelope(self, key: SessionKey) -> dict[str, Any]:
        self._ids += 1
        return {"id": f"e{self._ids}", "session_key": str(key), "created_at": self.now}

    def put(self, key: SessionKey, event: Event) -> None:
        """Store an event and do all that its session then owes."""
        member = self.member(key)
        self._seq += 1
        member.events.append((self._seq, event))
        draft = core.fold(
            str(key), member.state, self._seq, event, self._moment(member), member.policy
        )
        self._finish(member, draft)
        while (owed := core.owes(member.state)) is not None:
            if owed == "call":
                draft = Draft(str(key), member.state, self._moment(member), member.policy)
            else:
                known = dict(member.events)
                events = [known[q.seq] for q in core.head(member.state, member.policy)]
                draft = core.take(
                    str(key), member.state, events, self._moment(member), member.policy
                )
            self._finish(member, draft)

    def _moment(self, member: Member) -> Moment:
        return Moment(now=self.now, **self.moment_of)

    def _finish(self, member: Member, draft: Draft) -> None:
        if draft.wants_call:
            result = self.brain(str(member.key), draft)
            if isinstance(result, Exception):
                budget_at = result.budget_at if isinstance(result, ModelError) else None
                is_retryable = isinstance(result, TimeoutError)
                core.fail(draft, str(result), is_retryable=is_retryable, budget_at=budget_at)
            else:
                core.conclude(draft, result)
        self.commit(member, draft)

    def commit(self, member: Member, draft: Draft) -> None:
        turn = draft.finish(f"turn-{len(member.turns) + 1}", history_from=1)
        assert decode_turn(encode(turn)) == turn
        member.turns.append(turn)
        member.state = turn.state
        self._seq += 1
        for effect in turn.effects:
            self._carry(member, effect, self._seq)

    # ------------------------------------------------------------ what is carried

    def _carry(self, member: Member, effect: Effect, turn_seq: int) -> None:
        match effect:
            case ScheduleTimer(payload=p):
                payload = TimerPayload(
                    timer_id=p.timer_id, generation=p.generation, fire_at=p.fire_at, kind=p.kind
                )
                member.timers[p.timer_id, p.generation] = payload
            case CancelTimer(payload=p):
                member.timers.pop((p.timer_id, p.generation), None)
            case SpawnSession(payload=p):
                key = member.key.of_kind(p.kind, effect.id)
                start = Start(
                    prompt=p.prompt, parent=str(member.key), call_id=effect.id,
                    parent_turn=turn_seq, root_id=p.root_id, root=p.root, depth=p.depth,
                    allowance=p.allowance, steps=p.steps, is_ordered=p.is_ordered,
                    is_tainted=p.is_tainted,
                )  # fmt: skip
                self.pending.append((key, self._control(key, op="start", start=start)))
            case CancelCall(payload=p) if p.child:
                key = SessionKey.parse(p.child)
                self.pending.append((key, self._control(key, op="cancel", reason=p.reason)))
            case TellParent(payload=p):
                self.pending.append((SessionKey.parse(p.parent), self._told(p)))
            case _:
                pass

    def _told(self, p: Any) -> Event:
        key = SessionKey.parse(p.parent)
        if p.state in ("running", "asking"):
            status = ChildStatus(
                call_id=p.call_id, state=p.state, text=p.content, is_tainted=p.is_tainted,
                until=p.until, approval_id=p.approval_id,
            )  # fmt: skip
            return self._control(key, op="status", status=status)
        payload = ToolResultPayload(
            call_id=p.call_id,
            content=p.content,
            is_error=p.state == "failed",
            is_tainted=p.is_tainted,
            steps=p.steps,
        )
        return ToolResultEvent(payload=payload, **self._envelope(key))

    def deliver(self, index: int = 0, *, twice: bool = False) -> None:
        """Let something that is on its way arrive."""
        key, event = self.pending.pop(index)
        is_start = isinstance(event, Control) and event.payload.op == "start"
        for _ in range(1 + twice):
            if not (is_start and self.member(key).events):
                self.put(key, event)

    def arrive(self) -> None:
        """Let all that is on its way arrive, and what follows from it."""
        while self.pending:
            self.deliver()

    def fire(self, member: Member, timer_id: str, generation: int) -> None:
        payload = member.timers.pop((timer_id, generation))
        self.now = max(self.now, payload.fire_at)
        self.put(member.key, TimerFired(payload=payload, **self._envelope(member.key)))

    def wait(self, seconds: float) -> None:
        """Let time pass, and fire what comes due."""
        end = self.now + timedelta(seconds=seconds)
        while (due := self._next()) is not None and due[0] <= end:
            self.fire(*due[1:])
        self.now = end

    def _next(self) -> tuple[datetime, Member, str, int] | None:
        pending = [
            (payload.fire_at, str(m.key), m, *name)
            for m in self.members.values()
            for name, payload in m.timers.items()
        ]
        if not pending:
            return None
        at, _, member, timer_id, generation = min(
            pending, key=lambda one: (one[0], one[1], *one[3:])
        )
        return at, member, timer_id, generation

    def settle(self) -> None:
        """Let everything arrive and come due, until nothing is left to happen."""
        for _ in range(10_000):
            self.arrive()
            if (due := self._next()) is None:
                return
            self.fire(*due[1:])
        raise AssertionError("it never comes to an end")
