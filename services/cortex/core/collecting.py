"""What a turn adds: rows, notes, effects, timers; made whole by `finish`. Nothing is stored yet."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from vigil.contracts import (
    Block,
    BoardChange,
    BoardChangePayload,
    BoardEntity,
    CancelTimer,
    CancelTimerPayload,
    Cause,
    Effect,
    EffectType,
    FollowUp,
    Note,
    Outcome,
    Row,
    SaveMemory,
    SaveMemoryPayload,
    ScheduleTimer,
    ScheduleTimerPayload,
    State,
    TextBlock,
    TimerKind,
    Turn,
    Usage,
    effect_id,
)

from .policy import Moment, Policy
from .sway import Sway

replace = msgspec.structs.replace


class Collecting:
    """Collects what one turn adds to `state`."""

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
        self.unsaid: list[str] = []
        self.summary = ""
        self.is_summary_tainted = False
        self.is_tainted = False
        """Whether the rows are of a tainted loop, which was ended."""
        self.was_swayed = False
        """Whether the model that answered was shown untrusted content."""
        self.history_from = 0
        """Set with a summary: the first turn that it doesn't stand for."""
        self.is_dirty = False
        """Whether there is anything to commit."""

    @property
    def ordinal(self) -> int:
        """The ordinal that the turn will have; also the generation of its timers."""
        return self.state.turns + 1

    def update(self, **changes: Any) -> None:
        self.state = replace(self.state, **changes)
        self.is_dirty = True

    def note(self, code: str, text: str, subject: str | None = None) -> None:
        self.notes.append(Note(code=code, text=text, subject=subject))

    def row(self, role: Any, source: Any, *blocks: Block) -> None:
        if blocks:
            row = Row(role=role, source=source, blocks=blocks, at=self.moment.now)
            self.rows.append(row)
            self.is_dirty = True

    def row_text(self, role: Any, source: Any, text: str) -> None:
        self.row(role, source, TextBlock(text=text))

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

    def cancel_deadline(self, timer_id: str, generation: int) -> None:
        """Take back a deadline: what it was for came before it."""
        self._cancel(timer_id, generation)

    # ------------------------------------------------------------ effects

    def save_memory(self, payload: SaveMemoryPayload, sway: Sway) -> None:
        """Hand something to memory; nobody waits for it."""
        payload = replace(payload, is_tainted=sway.is_outside)
        effect, ordinal = self._next_id("save_memory", payload, "memory")
        self.effects.append(SaveMemory(id=effect, ordinal=ordinal, payload=payload))

    def change_board(self, entity: BoardEntity) -> None:
        """Put an approval or a job onto the board, as it is now."""
        payload = BoardChangePayload(entity=entity)
        effect, ordinal = self._next_id("board_change", payload, "board")
        self.effects.append(BoardChange(id=effect, ordinal=ordinal, payload=payload))

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

    def _next_id(self, kind: EffectType, payload: Any, destination: str) -> tuple[str, int]:
        ordinal = self.state.effects + 1
        self.update(effects=ordinal)
        seq = self.cause.seq if self.cause is not None else self.state.position
        return effect_id(self.key, seq, ordinal, kind, payload, destination), ordinal

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
            unsaid=tuple(self.unsaid),
            summary=self.summary,
            is_summary_tainted=self.is_summary_tainted,
            is_tainted=self.is_tainted,
            is_swayed=self.was_swayed,
        )
