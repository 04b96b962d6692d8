"""A turn in the making: the state after it, and what it adds. Nothing here is stored yet.

What a turn does to loops (`loops`), says (`speech`), starts (`pending.tasks`) and
asks (`pending.requests`) is written down in a `Draft` by the functions there.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

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
    Job,
    Loop,
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
    ToldPayload,
    Turn,
    Urgency,
    Usage,
    effect_id,
)
from vigil.contracts.board import CycleReport, MadeText
from vigil.contracts.costs import RaiseOffer
from vigil.contracts.made import StepKind
from vigil.subjects import SessionKey

from .. import sway as sways
from ..sway import Sway
from . import job_record, notifications, source
from .inputs import Inputs
from .kinds import thinking
from .policy import Moment, Policy, limited
from .profile import Profile

RETRY_TIMER: Final = "_retry"
CALL_TIMER: Final = "_call"
"""The deadline of the tool calls that services run."""
SERVICES: Final = ("memory", "executor", "board", "caller")
"""Who answers under that deadline; sessions and people have others."""
PAUSE_TIMER: Final = "_pause"
OUTSIDE: Final = "_outside"
"""Begins the ids of follow-ups that an event from outside caused, not a plan of the agent's."""
INSTANT: Final = "%Y-%m-%d %H:%M:%S UTC"  # as people read notes


class Draft:
    """What one turn adds to `state`."""

    def __init__(
        self,
        key: str,
        state: State,
        moment: Moment,
        policy: Policy,
        cause: Cause | None = None,
        step: StepKind = "call",
    ) -> None:
        self.key = key
        self.state = state
        self.inputs = Inputs(step, moment)
        self.moment = moment
        self.policy = limited(policy, state.start)
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
        self.is_first = state.position == 0
        """Whether nothing came into the session before."""
        self._job_before = state.job
        self.last_words = ""
        """What a session that is no conversation said last: its parent is told."""
        self.acting_for = ""
        """The goal that a decision serves: of those that the look is at."""
        self.report: CycleReport | None = None
        self.bulletin: MadeText | None = None
        """What came of a cycle that ends, and the text for a bulletin that a session made."""

    @property
    def moment(self) -> Moment:
        """When it is decided: of a step that asks a model at last the one after its answer."""
        return self._moment

    @moment.setter
    def moment(self, moment: Moment) -> None:
        self._moment = self.inputs.noting(moment)

    @property
    def ordinal(self) -> int:
        """The ordinal that the turn will have; also the generation of its timers."""
        return self.state.turns + 1

    @property
    def timetable_row(self) -> str:
        """The row of the timetable that the session came from; empty: none."""
        return "" if self.state.start is None else self.state.start.row

    @property
    def goal(self) -> str:
        """The goal that is acted for, by what the core knows; empty: none."""
        return self.acting_for or ("" if self.state.start is None else self.state.start.goal)

    @property
    def wants_call(self) -> bool:
        """Whether the model must be asked before the loop can go on."""
        loop = self.state.loop
        return loop is not None and loop.retry is None and loop.waiting is None

    @property
    def loop(self) -> Loop:
        """The open loop; asking for it without one is a fault of the core."""
        if self.state.loop is None:
            raise AssertionError("no loop is open")
        return self.state.loop

    @property
    def profile(self) -> Profile:
        """Who thinks in the open loop; without one, the session."""
        loop = self.state.loop
        return self.policy.profile if loop is None else thinking(self.policy.profile, loop.purpose)

    @property
    def is_aside(self) -> bool:
        """Whether the open loop gives way to whatever comes in."""
        return self.state.loop is not None and self.profile.give_way is not None

    @property
    def is_ordered(self) -> bool:
        """Whether the person ordered what the loop says next. Of one that took in untrusted
        content, that is one message: the reminder itself."""
        return self.loop.is_ordered and not (self.sway.is_outside and self.has_spoken)

    @property
    def has_spoken(self) -> bool:
        """Whether the loop said anything but that it needs leave."""
        return self.loop.sends > self.loop.requests

    @property
    def sway(self) -> Sway:
        """Whether content from outside has a part in what the open loop decides (SPEC X-3)."""
        return sways.of_decision(self.state, self.moment, self.profile)

    @property
    def source(self) -> str:
        """Return the source of what the session has memory keep."""
        key = SessionKey.parse(self.key)
        return source.of(self.policy.profile, key, self.state.start, self.acting_for)

    @property
    def is_overtaken(self) -> bool:
        """Whether the person has written what the loop doesn't know of: a message that was folded
        beside it, or that waited already when the loop took an earlier one."""
        is_waiting = any(queued.type == "user_message" for queued in self.state.queue)
        return is_waiting or self.loop.fence < self.state.fence

    # ------------------------------------------------------------ what the turn adds

    def update(self, **changes: Any) -> None:
        self.state = replace(self.state, **changes)
        self.is_dirty = True

    def update_loop(self, **changes: Any) -> None:
        self.update(loop=replace(self.loop, **changes))

    def note(self, code: str, text: str, subject: str | None = None) -> None:
        self.notes.append(Note(code=code, text=text, subject=subject))

    def row(self, role: Any, source: Any, *blocks: Block, by: str = "") -> None:
        if blocks:
            at = self.moment.now
            self.rows.append(Row(role=role, source=source, blocks=blocks, at=at, by=by))
            self.is_dirty = True

    def row_text(self, role: Any, source: Any, text: str, by: str = "") -> None:
        self.row(role, source, TextBlock(text=text), by=by)

    def make_way(self, why: str) -> None:
        """Close the open loop, if it gives way: something came in."""
        if self.state.loop is not None and self.profile.give_way is not None:
            self.profile.give_way(self, why)

    # ------------------------------------------------------------ timers

    def open_follow_up(
        self, timer_id: str, follow_up: FollowUp, hours_at: datetime | None = None
    ) -> None:
        """Schedule it; the same id replaces the earlier one.

        Args:
            hours_at: when the hours were set that put it off; None: none do.
        """
        self.close_follow_up(timer_id)
        self.update(follow_ups={**self.state.follow_ups, timer_id: follow_up})
        self._schedule(timer_id, follow_up.generation, follow_up.fire_at, "follow_up", hours_at)

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

    def set_deadline(
        self, timer_id: str, due_at: datetime, hours_at: datetime | None = None
    ) -> None:
        """Schedule a deadline with this turn's generation; no user message voids it."""
        self._schedule(timer_id, self.ordinal, due_at, "deadline", hours_at)

    def cancel_deadline(self, timer_id: str, generation: int) -> None:
        """Take back a deadline: what it was for came before it."""
        self._cancel(timer_id, generation)

    def _schedule(
        self,
        timer_id: str,
        generation: int,
        at: datetime,
        kind: TimerKind,
        hours_at: datetime | None,
    ) -> None:
        payload = ScheduleTimerPayload(
            timer_id=timer_id, generation=generation, fire_at=at, kind=kind, hours_at=hours_at
        )
        effect, ordinal = self.next_id("schedule_timer", payload, "timers")
        self.effects.append(ScheduleTimer(id=effect, ordinal=ordinal, payload=payload))

    def _cancel(self, timer_id: str, generation: int) -> None:
        # One that this very turn would make is not made; nobody else knows of it.
        for effect in self.effects:
            made = effect.payload if isinstance(effect, ScheduleTimer) else None
            if made is not None and (made.timer_id, made.generation) == (timer_id, generation):
                self.effects.remove(effect)
                return
        payload = CancelTimerPayload(timer_id=timer_id, generation=generation)
        effect_key, ordinal = self.next_id("cancel_timer", payload, "timers")
        self.effects.append(CancelTimer(id=effect_key, ordinal=ordinal, payload=payload))

    # ------------------------------------------------------------ effects

    def save_memory(self, payload: SaveMemoryPayload, sway: Sway) -> None:
        """Hand something to memory; nobody waits for it."""
        payload = replace(payload, source=self.source, is_tainted=sway.is_outside)
        effect, ordinal = self.next_id("save_memory", payload, "memory")
        self.effects.append(SaveMemory(id=effect, ordinal=ordinal, payload=payload))

    def change_board(self, entity: BoardEntity) -> None:
        """Put an approval or a job onto the board, as it is now."""
        self.ask_board(BoardChangePayload(entity=entity))

    def ask_board(self, payload: BoardChangePayload) -> str:
        """Have something on the board made or changed; return the effect's id."""
        effect, ordinal = self.next_id("board_change", payload, "board")
        self.effects.append(BoardChange(id=effect, ordinal=ordinal, payload=payload))
        return effect

    def next_id(self, kind: EffectType, payload: Any, destination: str) -> tuple[str, int]:
        """Return the id and the ordinal of one more effect."""
        ordinal = self.state.effects + 1
        self.update(effects=ordinal)
        seq = self.cause.seq if self.cause is not None else self.state.position
        return effect_id(self.key, seq, ordinal, kind, payload, destination), ordinal

    # ------------------------------------------------------------ the turn

    def finish(self, turn_id: str, *, history_from: int) -> Turn:
        """Make the turn; a job whose loop was ended is over, and its change is on the board.

        Args:
            turn_id: random: it tells our commit from another's.
        """
        job = self.state.job
        is_over = self.state.loop is None and self.outcome != "taken_over"
        if job is not None and is_over and job_record.is_running(job):
            job = job_record.closed(job, self.outcome, self.notes, self.moment.now)
            self.update(job=job)
        if job is not None and job is not self._job_before:
            self.change_board(job)
            if job_record.is_running(self._job_before) and not job_record.is_running(job):
                self._notify_of(job)
        turn = self._turn(turn_id, history_from)
        is_known = sways.of_thread(turn.state, self.moment)
        taint = sways.taint(is_known | sways.of_what_stays(turn))
        return replace(turn, state=replace(turn.state, taint=taint))

    @property
    def is_for_one(self) -> bool:
        """Whether one person's home is told. What members wrote for their team orders nothing in
        another's own conversation."""
        return not self.policy.homes

    def _notify_of(self, job: Job) -> None:
        """Have the person told that a job ended."""
        start = [] if self.state.start is None else [self.state.start]
        sway = sways.of_job(job) | sways.of(*job.step_runs, *start)
        # With a state that could not be read went what tells who had a part in it.
        is_quotable = self.is_for_one and not (sway.is_outside or self.state.is_locked)
        title = job_record.line(job.skill or job.goal) if is_quotable else job.skill or ""
        words = job_record.last_words(job, is_quotable=is_quotable)
        self.notify_home("job", words, title=title)
        notifications.notify_mind(self, "job", words, title=title)

    def notify_home(
        self,
        what: str,
        text: str,
        *,
        title: str = "",
        urgency: Urgency = "normal",
        is_ordered: bool = True,
        once: str = "",
        sway: Sway = Sway.NONE,
        offer: RaiseOffer | None = None,
    ) -> None:
        """Have the person, or each member of the team, told where they are.

        Args:
            sway: of the text, which is said as it stands.
            once: what is told once in a home, whoever tells it; empty: this.
        """
        key = SessionKey.parse(self.key)
        message = ToldPayload(
            origin=self.key,
            text=text if self.is_for_one else f"{key.agent}: {text}",
            what=what,
            title=title,
            urgency=urgency,
            is_ordered=is_ordered,
            is_tainted=sway.is_outside,
            offer=offer,
        )
        own = str(replace(key, thread=self.policy.home_thread))
        for home in self.policy.homes or (own,):
            notifications.notify(self, home, message, once)

    def _turn(self, turn_id: str, history_from: int) -> Turn:
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
            made=self.inputs.made(self.moment, self.policy, self.rows),
        )
