"""One open session: read the next event, decide, call the model, commit. One at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Final

import structlog

from vigil import crash, metrics, spans, trace
from vigil.bus import Bus, Follower, Message
from vigil.clock import Clock
from vigil.config import Person, quiet_hours_of, zone_of
from vigil.contracts import Cause, Event, EventType, Queued, State, Turn, decode_event
from vigil.errors import InvalidInput
from vigil.metrics import Metrics
from vigil.subjects import SessionKey
from vigil.switches import Switches
from vigil.trace import Tracer

from . import core
from . import log as session_log
from .core import Draft, Moment, Policy
from .core.policy import quiet_until
from .history import History
from .model import ModelAnswer, ModelError
from .thinker import Thinker

log = structlog.get_logger("vigil.cortex")

CAREFUL_ATTEMPT: Final = 3
"""From this attempt at a step on, sessions are taken over one at a time."""
SUBJECT_TYPES: Final[dict[str, EventType]] = {
    "said": "user_message",
    "timer": "timer",
    "tool_result": "tool_result",
    "tick": "tick",
    "external": "external",
    "control": "control",
}


class Session:
    """An open session of this replica, under a lease. `run` ends when it is idle."""

    def __init__(
        self,
        key: SessionKey,
        *,
        bus: Bus,
        clock: Clock,
        new_id: Callable[[], str],
        thinker: Thinker,
        policy: Policy,
        switches: Switches,
        person: Person,
        history_rows: int,
        idle_release_s: float,
        careful: asyncio.Lock,
        tracer: Tracer,
        counts: Metrics,
    ) -> None:
        self.key = key
        self._bus = bus
        self._clock = clock
        self._new_id = new_id
        self._thinker = thinker
        self._policy = policy
        self._switches = switches
        self._timezone = person.timezone
        self._zone = zone_of(person)
        self._quiet_hours = quiet_hours_of(person)
        self._history_rows = history_rows
        self._idle_release_s = idle_release_s
        self._careful = careful
        """Shared by the sessions of a replica: see `_take_over`."""
        self._follower: Follower | None = None
        self._log = session_log.Loaded(state=State(), turn_seq=0, history=History(history_rows))
        self._tracer = tracer
        self._counts = counts
        self._span = tracer.begin(None)
        """Of the turn in the making: under the event's, from when it was read."""
        self._wake: Message | None = None
        self.is_closing = False

    # ------------------------------------------------------------ wakes

    @property
    def wake(self) -> Message | None:
        """The wake that is held until nothing is owed for it."""
        return self._wake

    async def hold(self, wake: Message) -> None:
        """Hold the newest wake; older ones are acked, since a newer event's wake follows."""
        held = self._wake
        if held is not None and held.seq > wake.seq:
            await self._bus.ack(wake)
            return
        if held is not None and held.seq < wake.seq:
            await self._bus.ack(held)
        self._wake = wake
        await self._settle_wake()

    async def _settle_wake(self) -> None:
        wake = self._wake
        if wake is None or self._log.state.position < wake.seq or core.owes(self._log.state):
            return
        self._wake = None
        crash.point("cortex.wake.before_ack")
        await self._bus.ack(wake)

    # ------------------------------------------------------------ life

    async def run(self, *, is_takeover: bool) -> None:
        """Process events until there was nothing to do for a while.

        Raises:
            Unavailable: the broker is away; the session must be opened anew.
        """
        try:
            await self._open(is_takeover=is_takeover)
            while await self._step():
                pass
        finally:
            self.is_closing = True
            if self._follower is not None:
                await self._follower.close()

    async def _open(self, *, is_takeover: bool) -> None:
        await self._load()
        crash.point("cortex.state.loaded")
        if is_takeover and await self._has_work():
            await self._take_over()
        if self._wake is not None:
            await self._settle_wake()

    async def _load(self) -> None:
        self._log = await session_log.load(self._bus, self.key, self._clock, self._history_rows)
        self._begin_span(self._log.traceparent)
        self._counts.count(metrics.DEAD_LETTERS, by=self._log.dead_letters)
        if self._follower is not None:
            await self._follower.close()
        self._follower = await self._bus.follow(
            self.key.stream, [self.key.in_all], self._log.state.position + 1
        )

    async def _has_work(self) -> bool:
        assert self._follower is not None  # noqa: S101 - loaded before
        return core.owes(self._log.state) is not None or self._follower.waiting > 0

    async def _take_over(self) -> None:
        """Count the attempt before the step is tried, so that a step that kills is found."""
        state = self._log.state
        if state.attempt + 1 < CAREFUL_ATTEMPT:
            await self._begin_takeover()
            return
        # Sessions that were open together die together, whichever of them kills the process.
        # From here on one at a time, so that only that one comes to be given up.
        async with self._careful:
            if state.attempt + 1 >= self._policy.attempts_max:
                await self._give_up()
            else:
                await self._begin_takeover()
                await self._step()

    async def _begin_takeover(self) -> None:
        state, moment = self._log.state, self._moment()
        await self._commit(core.begin_takeover(str(self.key), state, moment, self._policy))
        crash.point("cortex.takeover.after_commit")

    async def _give_up(self) -> None:
        state = self._log.state
        if core.owes(state) is None:
            message = await self._next_message()
            await self._poison(message, f"given up after {state.attempt + 1} attempts")
            return
        event = None
        if core.owes(state) == "take":
            with contextlib.suppress(InvalidInput):
                event = await self._queued_event(state.queue[0])
        draft = core.give_up(str(self.key), state, self._moment(), self._policy, event)
        await self._commit(draft)

    # ------------------------------------------------------------ one step

    async def _step(self) -> bool:
        """Do what is owed, or process the next event. False: idle for long enough."""
        owed = core.owes(self._log.state)
        if owed == "call":
            draft: Draft | None = self._draft()
        elif owed == "take":
            draft = await self._take()
        else:
            if self._wake is not None:
                await self._settle_wake()
            message = await self._next_or_idle()
            if message is None:
                return False
            draft = await self._fold(message)
        while draft is not None:
            draft = await self._conclude(draft)
        return True

    def _draft(self) -> Draft:
        return Draft(str(self.key), self._log.state, self._moment(), self._policy)

    async def _next_message(self) -> Message:
        assert self._follower is not None  # noqa: S101 - loaded before
        return self._follower.take_nowait() or await self._follower.__anext__()

    async def _next_or_idle(self) -> Message | None:
        assert self._follower is not None  # noqa: S101 - loaded before
        while (message := self._follower.take_nowait()) is None:
            try:
                await asyncio.wait_for(self._follower.arrived(), self._idle_release_s)
            except TimeoutError:
                # A held wake tells of an event that the follower is still to bring...
                await self._drop_empty_wake()
                if self._wake is None:
                    self.is_closing = True
                    return None
        return message

    async def _drop_empty_wake(self) -> None:
        """Acknowledge the wake of an event that is gone: erased, or too old to be kept."""
        wake = self._wake
        if wake is None or await self._bus.get(self.key.stream, wake.seq) is not None:
            return
        if self._wake is wake:
            self._wake = None
            await self._bus.ack(wake)

    async def _fold(self, message: Message) -> Draft | None:
        """Decode and fold one event; a poison one is dead-lettered and passed over."""
        crash.point("cortex.event.read")
        if message.seq <= self._log.state.position:
            return None
        self._begin_span(message.headers.get(trace.HEADER))
        try:
            event = self._decode(message)
        except InvalidInput as error:
            await self._poison(message, str(error))
            return None
        return core.fold(
            str(self.key), self._log.state, message.seq, event, self._moment(), self._policy
        )

    def _decode(self, message: Message) -> Event:
        event = decode_event(message.data)
        if event.session_key != str(self.key):
            raise InvalidInput("session_key", f"is {event.session_key!r} on {message.subject}")
        expected = SUBJECT_TYPES.get(message.subject.split(".")[5])
        if core.cause_of(message.seq, event).type != expected:
            raise InvalidInput("type", f"does not belong on {message.subject}")
        return event

    async def _poison(self, message: Message, reason: str) -> None:
        await session_log.dead_letter(self._bus, self.key, message, reason, self._clock)
        self._counts.count(metrics.DEAD_LETTERS)
        try:
            # Whoever waits for the end of an event that was given up knows no other id.
            event: Event | None = self._decode(message)
        except InvalidInput:
            event = None
        kind = SUBJECT_TYPES.get(message.subject.split(".")[5], "external")
        id_ = f"seq-{message.seq}" if event is None else event.id
        cause = Cause(id=id_, seq=message.seq, type=kind)
        state, moment = self._log.state, self._moment()
        draft = core.poison(str(self.key), state, cause, reason, moment, self._policy, event)
        await self._commit(draft)

    async def _take(self) -> Draft | None:
        """Read what is first in the queue back from the log and take it."""
        state = self._log.state
        events: list[Event] = []
        try:
            for queued in core.head(state, self._policy):
                events.append(await self._queued_event(queued))
        except InvalidInput as error:
            if not events:
                log.error("queued event lost", action="cortex.take", error=str(error))
                await self._commit(core.give_up(str(self.key), state, self._moment(), self._policy))
                return None
        return core.take(str(self.key), state, events, self._moment(), self._policy)

    async def _queued_event(self, queued: Queued) -> Event:
        """Return what a queued entry points to. Raises: InvalidInput."""
        message = await self._bus.get(self.key.stream, queued.seq)
        if message is None:
            raise InvalidInput("queue", f"event {queued.seq} is gone")
        self._begin_span(message.headers.get(trace.HEADER))
        return self._decode(message)

    async def _conclude(self, draft: Draft) -> Draft | None:
        """Ask the model if the draft needs it, then commit. Returns a draft to go on with."""
        if not draft.wants_call:
            await self._commit(draft)
            return None
        return await self._think(draft)

    # ------------------------------------------------------------ thinking

    async def _think(self, draft: Draft) -> Draft | None:
        """Call the model while folding what comes in meanwhile (SPEC S-13)."""
        crash.point("cortex.model.before_call")
        rows = self._log.history.rows(draft.rows)
        call = asyncio.ensure_future(
            self._thinker.think(
                self.key,
                draft.state,
                rows,
                timezone=self._timezone,
                policy=self._policy,
                parent=self._span.header,
            )
        )
        try:
            await asyncio.sleep(0)
            while not call.done():
                message = await self._during(call)
                if message is None:
                    break
                interrupted, draft = await self._meanwhile(draft, message)
                if interrupted:
                    return draft if draft.is_dirty else None
            self._apply(draft, call)
        finally:
            call.cancel()
        crash.point("cortex.model.after_call")
        await self._commit(draft)
        return None

    async def _during(self, call: asyncio.Future[ModelAnswer]) -> Message | None:
        """Wait for the next event, or for the call to end (None)."""
        assert self._follower is not None  # noqa: S101 - loaded before
        arrival = asyncio.ensure_future(self._follower.arrived())
        try:
            both: set[asyncio.Future[Any]] = {call, arrival}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if arrival.done():
                arrival.result()
        finally:
            arrival.cancel()
        return None if call.done() else self._follower.take_nowait()

    async def _meanwhile(self, draft: Draft, message: Message) -> tuple[bool, Draft]:
        """Fold an event that came during a call -> (whether it ends the call, what goes on)."""
        if draft.is_dirty and not await self._commit(draft):
            return True, self._draft()  # somebody else goes on from here
        loop, span = self._log.state.loop, self._span
        folded = await self._fold(message)
        if folded is not None and folded.state.loop != loop:
            if folded.wants_call:
                # What it ended is over now, whatever becomes of the call that follows.
                await self._commit(folded)
                return True, self._draft()
            return True, folded
        if folded is not None:
            await self._commit(folded)
        if self._log.state.loop == loop:
            self._span = span  # what was folded has one of its own
        return self._log.state.loop != loop, self._draft()

    def _apply(self, draft: Draft, call: asyncio.Future[ModelAnswer]) -> None:
        draft.moment = self._moment()
        try:
            answer = call.result()
        except ModelError as error:
            core.fail(
                draft,
                error.reason,
                is_retryable=error.is_retryable,
                retry_after_s=error.retry_after_s,
                is_budget=error.is_budget,
            )
        else:
            core.conclude(draft, answer)

    # ------------------------------------------------------------ committing

    async def _commit(self, draft: Draft) -> bool:
        """Commit the draft as one turn.

        False: another replica was first; the draft is thrown away and the log read anew.
        """
        history_from = self._log.history.first_turn(self._log.turn_seq + 1)
        turn = draft.finish(self._new_id(), history_from=history_from)
        try:
            seq = await session_log.commit(
                self._bus, self.key, turn, self._log.turn_seq, self._span.header
            )
        except session_log.Conflict:
            log.info("conflict", action="cortex.conflict", session=str(self.key))
            self._counts.count(metrics.CONFLICTS)
            await self._load()
            return False
        self._log.turn_seq = seq
        self._log.state = turn.state
        self._log.history.add(seq, turn.rows)
        self._end_span(turn)
        if self._wake is not None:
            await self._settle_wake()
        return True

    def _begin_span(self, parent: str | None) -> None:
        self._span = self._tracer.begin(parent)
        trace.current.set(self._span.header)

    def _end_span(self, turn: Turn) -> None:
        """Tell about a committed turn, and begin the span of the next step of the same work."""
        span, event = self._span, turn.event
        self._counts.count(metrics.TURNS, turn.outcome)
        self._counts.observe(metrics.TURN_SECONDS, span.lasted_s)
        if turn.outcome == "taken_over":
            self._counts.count(metrics.TAKEOVERS)
        if self._tracer.is_on:
            attributes: dict[str, str | int] = {
                spans.SESSION: turn.session_key,
                spans.ORDINAL: turn.ordinal,
                spans.OUTCOME: turn.outcome,
            }
            if turn.state.attempt:
                attributes[spans.ATTEMPT] = turn.state.attempt
            if event is not None:
                attributes |= {spans.EVENT_ID: event.id, spans.EVENT_TYPE: event.type}
            self._tracer.end(span, spans.TURN, attributes)
        self._begin_span(span.parent)

    def _moment(self) -> Moment:
        now = self._clock.now()
        return Moment(
            now=now,
            quiet_until=quiet_until(now, self._quiet_hours, self._zone),
            is_paused=self._switches.paused is not None,
        )
