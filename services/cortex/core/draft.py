"""A turn in the making: the state after it, and what it adds. Nothing here is stored yet."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from vigil.contracts import (
    AGENT_FOLLOW_UP,
    SOCKET,
    CallTool,
    CallToolPayload,
    Cause,
    FollowUp,
    Loop,
    Outcome,
    Pause,
    SendMessage,
    SendPayload,
    State,
    Turn,
    Waiting,
)

from ..profiles import thinking
from . import gates, job_record
from . import sway as sways
from .collecting import replace
from .policy import Moment, Policy
from .profile import Profile
from .spawning import Spawning, ending
from .sway import Sway

RETRY_TIMER: Final = "_retry"
CALL_TIMER: Final = "_call"
"""The deadline of the tool calls that services run."""
SERVICES: Final = ("memory", "executor")
"""Who runs tools under that deadline; sessions and people have others."""
PAUSE_TIMER: Final = "_pause"
HELD: Final = "_held"
"""Begins the ids of follow-ups that are brought again, by no plan of their own."""
OUTSIDE: Final = "_outside"
"""Begins the ids of follow-ups that an event from outside caused, not a plan of the agent's."""
INSTANT: Final = "%Y-%m-%d %H:%M:%S UTC"
"""How a note names an instant: people read it."""
PAUSE_LOOK_AGAIN_S: Final = 5.0
"""A held follow-up comes back this soon; the scheduler keeps it until the pause ends."""


class Draft(Spawning):
    """One turn in the making, by the rules of loops, sends and pauses."""

    def __init__(
        self, key: str, state: State, moment: Moment, policy: Policy, cause: Cause | None = None
    ) -> None:
        super().__init__(key, state, moment, policy, cause)
        self.is_first = state.position == 0
        """Whether nothing came into the session before."""
        self._job_before = state.job
        self.last_words = ""
        """What a session that is no conversation said last: its parent is told."""

    def finish(self, turn_id: str, *, history_from: int) -> Turn:
        """Make the turn; a job whose loop was ended is over, and its change is on the board."""
        job = self.state.job
        if job is not None and self.state.loop is None and job_record.is_running(job):
            job = job_record.closed(job, self.outcome, self.notes, self.moment.now)
            self.update(job=job)
        if job is not None and job is not self._job_before:
            self.change_board(job)
        turn = super().finish(turn_id, history_from=history_from)
        is_known = sways.of_thread(turn.state, self.moment)
        taint = sways.taint(is_known | sways.of_what_stays(turn))
        return replace(turn, state=replace(turn.state, taint=taint))

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

    def make_way(self, why: str) -> None:
        """Close the open loop, if it gives way: something came in."""
        if self.state.loop is not None and self.profile.give_way is not None:
            self.profile.give_way(self, why)

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
    def is_overtaken(self) -> bool:
        """Whether the person has written what the loop doesn't know of: a message that was folded
        beside it, or that waited already when the loop took an earlier one."""
        is_waiting = any(queued.type == "user_message" for queued in self.state.queue)
        return is_waiting or self.loop.fence < self.state.fence

    def update_loop(self, **changes: Any) -> None:
        self.update(loop=replace(self.loop, **changes))

    # ------------------------------------------------------------ loops

    def begin_loop(
        self,
        cause: Cause,
        *,
        is_direct: bool,
        timer_id: str | None = None,
        follow_up: FollowUp | None = None,
        is_ordered: bool = False,
        sway: Sway = Sway.NONE,
        joined: tuple[str, ...] = (),
        purpose: str = "",
        task_id: str = "",
    ) -> None:
        """Open the loop for `cause`: the model will be asked.

        Args:
            sway: of what begins it, beside the follow-up.
            purpose: of a loop that is opened beside the session's own (`profiles`).
        """
        task = self.state.tasks.get(task_id)
        self.cause = cause
        loop = Loop(
            cause=cause,
            fence=self.state.fence,
            begun_at=self.moment.now,
            is_direct=is_direct,
            is_ordered=is_ordered or (follow_up is not None and follow_up.keep),
            tag=None if timer_id is None else AGENT_FOLLOW_UP,
            timer_id=timer_id,
            follow_up=follow_up,
            taint=sways.taint(sway if follow_up is None else sway | sways.of(follow_up)),
            joined=joined,
            purpose=purpose or self.policy.profile.purpose,
            task_id=task_id,
            spawned=0 if task is None else task.spawned,
        )
        self.update(loop=loop)
        self.outcome = "begun"

    def end_loop(self, outcome: Outcome | None) -> None:
        """Close the loop; the exchange of its cause is over.

        `outcome` None: another event ends it, and gives the turn its outcome.
        """
        loop, sway = self.loop, self.sway
        if loop.retry is not None:
            self._cancel(RETRY_TIMER, loop.retry.generation)
        if loop.waiting is not None:
            self._stop_waiting(loop.waiting)
        self.ended += (*loop.joined, loop.cause.id)
        self.update(loop=None)
        self.close_task(loop.task_id)
        self._tell_end(loop, outcome, sway)
        self.is_tainted = self.is_tainted or (sways.of_loop(loop).is_outside and bool(self.rows))
        if loop.is_direct:
            self._await_pause_after(loop)
        if outcome is not None:
            self.outcome = outcome

    def _stop_waiting(self, waiting: Waiting) -> None:
        """See to it that nobody works on what no loop waits for any more."""
        if waiting.generation:
            self.cancel_deadline(CALL_TIMER, waiting.generation)
        for call in waiting.calls:
            self.abandon(call, "nobody waits for it any more")

    def _tell_end(self, loop: Loop, outcome: Outcome | None, sway: Sway) -> None:
        """Tell who started this session, if somebody did, that it is over and what came of it."""
        if self.state.start is not None:
            state, content = ending(outcome, self.notes, self.last_words, loop.unsaid)
            self.tell_end(state, content, sway)

    def take_in(self, sway: Sway) -> None:
        """Let what a result brings have its part in all that the open loop decides from now on."""
        if sway.is_outside:
            self.update_loop(taint=sways.taint(sway))

    def call_tool(self, payload: CallToolPayload, sway: Sway) -> str:
        """Ask a service to run a tool; return the effect's id, which its result names."""
        payload = replace(payload, is_tainted=sway.is_outside)
        effect, ordinal = self._next_id("call_tool", payload, payload.service)
        self.effects.append(CallTool(id=effect, ordinal=ordinal, payload=payload))
        return effect

    # ------------------------------------------------------------ what is said

    def say(
        self,
        text: str,
        sway: Sway,
        *,
        is_autonomous: bool,
        is_ordered: bool = False,
        tag: str | None = None,
        fence: int | None = None,
        channel: str | None = None,
    ) -> gates.Blocked | None:
        """Send `text`, unless the gates or the quiet hours say otherwise.

        `channel` None: autonomous messages go where the person wants them, others to the socket.
        `sway`: of the text, which need not be the open loop's.

        Returns the refusal, if it was blocked. A message held back by quiet hours or a pause
        becomes a timer with a fixed text, and counts as sent as far as the caller goes. A session
        that is no conversation says nothing to the person: these are its last words.
        """
        if not self.policy.profile.is_conversation:
            self.last_words = text
            return None
        if is_autonomous:
            blocked = self.gate(is_ordered=is_ordered) or self._no_room(text, is_ordered=is_ordered)
            if blocked is not None:
                self.note(f"blocked_{blocked.code}", blocked.text)
                self.is_dirty = True
                return blocked
            if self.held_until() is not None:
                self._hold_text(text, sway, is_ordered=is_ordered, channel=channel)
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
            is_tainted=sway.is_outside,
        )
        effect, ordinal = self._next_id("send_message", payload, payload.channel)
        self.effects.append(SendMessage(id=effect, ordinal=ordinal, payload=payload))
        self.update(last_send=effect)
        if is_voidable:
            self.update(unheard=(*self.state.unheard, effect))
        if is_autonomous:
            counters = gates.count(
                self.state.counters, is_ordered=is_ordered, now_ms=self.moment.now_ms
            )
            self.update(counters=counters)
        return None

    def take_back(self) -> None:
        """Take note of what the person's message came before: that was not said, and won't be."""
        sends = self.state.unheard
        if sends:
            self.unsaid += [effect for effect in sends if effect in self.moment.unsaid]
            self.update(unheard=())

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

    # ------------------------------------------------------------ what is held back

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

    def _hold_text(self, text: str, sway: Sway, *, is_ordered: bool, channel: str | None) -> None:
        loop = self.state.loop
        is_outside = loop is not None and (
            loop.cause.type == "external" or (loop.timer_id or "").startswith(OUTSIDE)
        )
        timer_id = f"{OUTSIDE if is_outside else HELD}-{self.state.effects + 1}"
        follow_up = FollowUp(
            generation=0,
            fire_at=self.moment.now,
            reason="held back",
            message=text,
            keep=is_ordered,
            is_tainted=sway.is_outside,
            channel=channel,
        )
        self.hold(timer_id, follow_up)

    def bring_again(self, follow_up: FollowUp) -> None:
        """Let a follow-up come once more, at once, whose name another one has by now."""
        again = replace(
            follow_up,
            generation=self.ordinal,
            fire_at=self.moment.now,
            held_from=follow_up.held_from or follow_up.fire_at,
        )
        self.open_follow_up(f"{HELD}-{self.state.effects + 1}", again)

    # ------------------------------------------------------------ pauses

    @property
    def next_pause_at(self) -> datetime:
        """When the conversation counts as paused, if nothing more is said from now on."""
        return self.moment.now + timedelta(seconds=self.policy.pause_s)

    def await_pause(self, due_at: datetime) -> None:
        """Set the deadline at which it is looked whether the conversation pauses."""
        self.set_deadline(PAUSE_TIMER, due_at)
        self.update(pause=Pause(generation=self.ordinal, due_at=due_at))

    def _await_pause_after(self, loop: Loop) -> None:
        """Remember from where on memory is to be offered what was said."""
        if not self.policy.pause_s:
            self.update(is_offered=False)
            return
        if not self.state.unsaved_from:
            # Its rows are in later turns than the event that it answers.
            start = loop.cause.seq
            if not self.state.is_offered:
                start = min(self.state.history_from or start, start)
            self.update(unsaved_from=start, is_offered=True)
        if self.state.pause is None:
            self.await_pause(self.next_pause_at)
        else:
            self.update(pause=replace(self.state.pause, due_at=self.next_pause_at))
