"""A turn in the making: the state after it, and what it adds. Nothing here is stored yet."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from vigil.contracts import (
    AGENT_FOLLOW_UP,
    SOCKET,
    Block,
    CancelTimer,
    CancelTimerPayload,
    Cause,
    Effect,
    EffectType,
    FollowUp,
    Loop,
    Note,
    Outcome,
    Row,
    ScheduleTimer,
    ScheduleTimerPayload,
    SendMessage,
    SendPayload,
    State,
    TextBlock,
    TimerKind,
    Turn,
    Usage,
    effect_id,
)

from . import gates
from .policy import Moment, Policy

replace = msgspec.structs.replace
RETRY_TIMER: Final = "_retry"
OUTSIDE: Final = "_outside"
"""Begins the ids of follow-ups that an event from outside caused, not a plan of the agent's."""
INSTANT: Final = "%Y-%m-%d %H:%M:%S UTC"
"""How a note names an instant: people read it."""
PAUSE_LOOK_AGAIN_S: Final = 5.0
"""A held follow-up comes back this soon; the scheduler keeps it until the pause ends."""


class Draft:
    """Collects one turn on top of `state`."""

    def __init__(
        self, key: str, state: State, moment: Moment, policy: Policy, cause: Cause | None = None
    ) -> None:
        self.key = key
        self.state = state
        self.moment = moment
        self.policy = policy
        self.cause = cause if cause is not None else (state.loop.cause if state.loop else None)
        self.outcome: Outcome = "ignored"
        self.rows: list[Row] = []
        self.effects: list[Effect] = []
        self.notes: list[Note] = []
        self.usage: list[Usage] = []
        self.ended: list[str] = []
        self.is_dirty = False
        """Whether there is anything to commit."""

    @property
    def ordinal(self) -> int:
        """The ordinal that the turn will have; also the generation of its timers."""
        return self.state.turns + 1

    @property
    def wants_call(self) -> bool:
        """Whether the model must be asked before the loop can go on."""
        loop = self.state.loop
        return loop is not None and loop.retry is None

    @property
    def loop(self) -> Loop:
        """The open loop; asking for it without one is a fault of the core."""
        if self.state.loop is None:
            raise AssertionError("no loop is open")
        return self.state.loop

    def update(self, **changes: Any) -> None:
        self.state = replace(self.state, **changes)
        self.is_dirty = True

    def update_loop(self, **changes: Any) -> None:
        self.update(loop=replace(self.loop, **changes))

    def note(self, code: str, text: str, subject: str | None = None) -> None:
        self.notes.append(Note(code=code, text=text, subject=subject))

    def row(self, role: Any, source: Any, *blocks: Block) -> None:
        if blocks:
            row = Row(role=role, source=source, blocks=blocks, at=self.moment.now)
            self.rows.append(row)
            self.is_dirty = True

    def row_text(self, role: Any, source: Any, text: str) -> None:
        self.row(role, source, TextBlock(text=text))

    # ------------------------------------------------------------ loops

    def begin_loop(
        self,
        cause: Cause,
        *,
        is_direct: bool,
        timer_id: str | None = None,
        follow_up: FollowUp | None = None,
        is_tainted: bool = False,
        joined: tuple[str, ...] = (),
    ) -> None:
        """Open the loop for `cause`: the model will be asked."""
        self.cause = cause
        loop = Loop(
            cause=cause,
            fence=self.state.fence,
            begun_at=self.moment.now,
            is_direct=is_direct,
            is_ordered=follow_up is not None and follow_up.keep,
            tag=None if timer_id is None else AGENT_FOLLOW_UP,
            timer_id=timer_id,
            follow_up=follow_up,
            is_tainted=is_tainted or (follow_up is not None and follow_up.is_tainted),
            joined=joined,
        )
        self.update(loop=loop)
        self.outcome = "begun"

    def end_loop(self, outcome: Outcome | None) -> None:
        """Close the loop; the exchange of its cause is over.

        `outcome` None: another event ends it, and gives the turn its outcome.
        """
        loop = self.loop
        if loop.retry is not None:
            self._cancel(RETRY_TIMER, loop.retry.generation)
        self.ended += (*loop.joined, loop.cause.id)
        self.update(loop=None)
        if outcome is not None:
            self.outcome = outcome

    # ------------------------------------------------------------ effects

    def _next_id(self, kind: EffectType, payload: Any, destination: str) -> tuple[str, int]:
        ordinal = self.state.effects + 1
        self.update(effects=ordinal)
        seq = self.cause.seq if self.cause is not None else self.state.position
        return effect_id(self.key, seq, ordinal, kind, payload, destination), ordinal

    def say(
        self,
        text: str,
        *,
        is_autonomous: bool,
        is_ordered: bool = False,
        tag: str | None = None,
        fence: int | None = None,
        channel: str | None = None,
    ) -> gates.Blocked | None:
        """Send `text`, unless the gates or the quiet hours say otherwise.

        `channel` None: autonomous messages go where the person wants them, others to the socket.

        Returns the refusal, if it was blocked. A message held back by quiet hours or a pause
        becomes a timer with a fixed text, and counts as sent as far as the caller goes.
        """
        if is_autonomous:
            blocked = self.gate(is_ordered=is_ordered) or self._no_room(text, is_ordered=is_ordered)
            if blocked is not None:
                self.note(f"blocked_{blocked.code}", blocked.text)
                self.is_dirty = True
                return blocked
            if self.held_until() is not None:
                self._hold_text(text, is_ordered=is_ordered, channel=channel)
                return None
        is_voidable = is_autonomous and not is_ordered
        if not is_autonomous and self.policy.clear_policy == "all":
            is_voidable = True
        payload = SendPayload(
            text=text,
            caused_by=self.cause.id if self.cause is not None else "",
            # What may be voided is fenced by what its loop knew; the rest by what is known now.
            fence=fence if is_voidable and fence is not None else self.state.fence,
            previous=self.state.last_send,
            is_autonomous=is_autonomous,
            is_voidable=is_voidable,
            tag=tag,
            channel=channel or (self.policy.route if is_autonomous else SOCKET),
            is_tainted=self.state.loop is not None and self.state.loop.is_tainted,
        )
        effect, ordinal = self._next_id("send_message", payload, payload.channel)
        self.effects.append(SendMessage(id=effect, ordinal=ordinal, payload=payload))
        self.update(last_send=effect)
        if is_autonomous:
            counters = gates.count(
                self.state.counters, is_ordered=is_ordered, now_ms=self.moment.now_ms
            )
            self.update(counters=counters)
        return None

    def gate(self, *, is_ordered: bool) -> gates.Blocked | None:
        return gates.check(
            self.state.counters,
            is_ordered=is_ordered,
            is_locked=self.state.is_locked,
            now_ms=self.moment.now_ms,
            policy=self.policy,
        )

    def _no_room(self, text: str, *, is_ordered: bool) -> gates.Blocked | None:
        """Refuse what can't be held back any more: it would travel in every turn until then."""
        if self.held_until() is None or is_ordered:
            return None
        held = self.state.follow_ups.values()
        size = sum(len(f.reason.encode()) + len((f.message or "").encode()) for f in held)
        is_full = len(held) >= self.policy.follow_ups_max
        if is_full or size + len(text.encode()) > self.policy.follow_up_bytes_max:
            return gates.Blocked("no_room", f"{self.holds_by}, and too much is put off already")
        return None

    @property
    def cooldown_left_ms(self) -> int:
        """How long the next message that the person didn't order has to wait."""
        last_ms = self.state.counters.last_autonomous_ms
        if last_ms is None:
            return 0
        return max(last_ms + self.policy.cooldown_ms - self.moment.now_ms, 0)

    def held_until(self) -> datetime | None:
        """Return until when autonomous messages are held back, if they are."""
        if self.moment.is_paused:
            return self.moment.now + timedelta(seconds=PAUSE_LOOK_AGAIN_S)
        return self.moment.quiet_until

    @property
    def holds_by(self) -> str:
        """What holds autonomous messages back, in words."""
        return "a pause" if self.moment.is_paused else "quiet hours"

    def hold(
        self, timer_id: str, follow_up: FollowUp, until: datetime | None = None, why: str = ""
    ) -> None:
        """Put a due follow-up off: until quiet hours or the pause are over, or until `until`."""
        until, why = until or self.held_until(), why or self.holds_by
        if until is None:
            raise AssertionError("nothing holds it back")
        self.note("held", f"{why}: put off to {until:{INSTANT}}", timer_id)
        self.open_follow_up(
            timer_id,
            replace(
                follow_up,
                generation=self.ordinal,
                fire_at=until,
                held_from=follow_up.held_from or follow_up.fire_at,
            ),
        )

    def _hold_text(self, text: str, *, is_ordered: bool, channel: str | None) -> None:
        loop = self.loop
        is_outside = loop.cause.type == "external" or (loop.timer_id or "").startswith(OUTSIDE)
        timer_id = f"{OUTSIDE if is_outside else '_held'}-{self.state.effects + 1}"
        follow_up = FollowUp(
            generation=0,
            fire_at=self.moment.now,
            reason="held back",
            message=text,
            keep=is_ordered,
            is_tainted=loop.is_tainted,
            channel=channel,
        )
        self.hold(timer_id, follow_up)

    # ------------------------------------------------------------ timers

    def open_follow_up(self, timer_id: str, follow_up: FollowUp) -> None:
        """Schedule it; the same id replaces the earlier one."""
        self.close_follow_up(timer_id)
        self.update(follow_ups={**self.state.follow_ups, timer_id: follow_up})
        self._schedule(timer_id, follow_up.generation, follow_up.fire_at, "follow_up")

    def close_follow_up(self, timer_id: str, *, has_fired: bool = False) -> FollowUp | None:
        """Take it out of the state; unless it fired, its schedule goes, too."""
        follow_up = self.state.follow_ups.get(timer_id)
        if follow_up is None:
            return None
        rest = {k: v for k, v in self.state.follow_ups.items() if k != timer_id}
        self.update(follow_ups=rest)
        if not has_fired:
            self._cancel(timer_id, follow_up.generation)
        return follow_up

    def set_deadline(self, timer_id: str, due_at: datetime) -> None:
        """Schedule a deadline with this turn's generation; no user message voids it."""
        self._schedule(timer_id, self.ordinal, due_at, "deadline")

    def _schedule(self, timer_id: str, generation: int, at: datetime, kind: TimerKind) -> None:
        payload = ScheduleTimerPayload(
            timer_id=timer_id, generation=generation, fire_at=at, kind=kind
        )
        effect, ordinal = self._next_id("schedule_timer", payload, "timers")
        self.effects.append(ScheduleTimer(id=effect, ordinal=ordinal, payload=payload))

    def _cancel(self, timer_id: str, generation: int) -> None:
        # One that this very turn would make is not made; nobody else knows of it.
        for effect in self.effects:
            if (
                isinstance(effect, ScheduleTimer)
                and effect.payload.timer_id == timer_id
                and effect.payload.generation == generation
            ):
                self.effects.remove(effect)
                return
        payload = CancelTimerPayload(timer_id=timer_id, generation=generation)
        effect_key, ordinal = self._next_id("cancel_timer", payload, "timers")
        self.effects.append(CancelTimer(id=effect_key, ordinal=ordinal, payload=payload))

    # ------------------------------------------------------------ the turn

    def finish(self, turn_id: str, *, history_from: int) -> Turn:
        """Make the turn. `turn_id` is random: it tells our commit from another's."""
        state = replace(
            self.state,
            turns=self.ordinal,
            attempt=self.state.attempt if self.outcome == "taken_over" else 0,
            history_from=history_from,
        )
        return Turn(
            id=turn_id,
            session_key=self.key,
            ordinal=state.turns,
            event=self.cause,
            outcome=self.outcome,
            state=state,
            created_at=self.moment.now,
            rows=tuple(self.rows),
            effects=tuple(self.effects),
            notes=tuple(self.notes),
            usage=tuple(self.usage),
            ended=tuple(self.ended),
        )
