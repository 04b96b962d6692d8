"""One open session: read the next event, decide, call the model, commit. One at a time."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable
from typing import Final

import msgspec
import structlog

from vigil import crash
from vigil.bus.bus import Message
from vigil.contracts import Event, Queued, State, ToolResultEvent
from vigil.errors import InvalidInput
from vigil.observe import metrics, trace
from vigil.settings.sections import Person
from vigil.subjects import SessionKey

from .. import core
from ..core import Draft, Policy
from ..core.context.versions import is_rewinding
from ..core.draft.profile import ModelQuestion
from ..history import History
from ..model import ModelError
from ..policy import routed
from ..thought.recollector import LoopMemory
from . import log as session_log
from .inbox import Inbox
from .moments import Moments
from .open_session import LiveSession, notices_of
from .progress import Progress
from .resources import SessionResources
from .turn_span import TurnSpan
from .wakes import Wakes

log = structlog.get_logger("vigil.cortex")

CAREFUL_ATTEMPT: Final = 3
"""From this attempt at a step on, sessions are taken over one at a time."""


class Session:
    """An open session of this replica, under a lease. `run` ends when it is idle."""

    def __init__(
        self,
        key: SessionKey,
        resources: SessionResources,
        *,
        policy: Policy,
        person: Callable[[], Person],
        context_tokens: int,
        on_rest: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_rest`: called once no wake is held."""
        self.key = key
        self._resources = resources
        self._bus, self._clock = resources.bus, resources.clock
        self._memory = LoopMemory(resources.recollector, key)
        self._configured = policy
        self._person = person
        self._new_history = functools.partial(History, resources.history_rows, context_tokens)
        self._incoming = Inbox(resources.events, key)
        self._log = session_log.Loaded(state=State(), turn_seq=0, history=self._new_history())
        self._counts = resources.counts
        self._span = TurnSpan(resources.tracer, resources.counts)
        self._live = LiveSession(
            key,
            resources,
            memory=self._memory,
            policy=policy,
            person=person,
            context_tokens=context_tokens,
            loaded=lambda: self._log,
            parent=lambda: self._span.header,
        )
        self._moments = Moments(
            key, resources, policy=lambda: self._policy, person=person, loaded=lambda: self._log
        )
        self._wakes = Wakes(resources.bus, key, lambda: self._log.state, on_rest)
        self.is_closing = False
        self.progress = Progress(context_tokens, lambda: self._wakes.held)

    @property
    def _policy(self) -> Policy:
        """The core's, with the channel that the person prefers now."""
        return routed(self._configured, self._person())

    @property
    def wake(self) -> Message | None:
        """The wake that is held until nothing is owed for it."""
        return self._wakes.held

    async def hold(self, wake: Message) -> None:
        """Hold a wake, if it is the newest."""
        await self._wakes.hold(wake)

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
            await self._incoming.close()

    async def _open(self, *, is_takeover: bool) -> None:
        await self._load()
        crash.point("cortex.state.loaded")
        if is_takeover and (core.owes(self._log.state) or self._incoming.has_any):
            await self._take_over()
        await self._wakes.settle()

    async def _load(self) -> None:
        self._log = await session_log.load(
            self._bus, self.key, self._clock, self._counts, self._new_history()
        )
        self._span.begin(self._log.traceparent)
        await self._incoming.follow(self._log.state.position + 1)

    async def _take_over(self) -> None:
        """Count the attempt before the step is tried, so that a step that kills is found."""
        state = self._log.state
        if state.attempt + 1 < CAREFUL_ATTEMPT:
            await self._begin_takeover()
            return
        # Sessions that were open together die together, whichever of them kills the process.
        # From here on one at a time, so that only that one comes to be given up.
        async with self._resources.careful:
            if state.attempt + 1 >= self._policy.attempts_max:
                await self._give_up()
            else:
                await self._begin_takeover()
                await self._step()

    async def _begin_takeover(self) -> None:
        state, moment = self._log.state, self._moments.now()
        await self._commit(core.begin_takeover(str(self.key), state, moment, self._policy))
        crash.point("cortex.takeover.after_commit")

    async def _give_up(self) -> None:
        state = self._log.state
        if core.owes(state) is None:
            message = await self._incoming.next()
            await self._poison(message, f"given up after {state.attempt + 1} attempts")
            return
        event = None
        if core.owes(state) == "take":
            with contextlib.suppress(InvalidInput):
                event = await self._queued_event(state.queue[0])
        await self._commit(
            core.give_up(str(self.key), state, self._moments.now(), self._policy, event)
        )

    # ------------------------------------------------------------ one step

    async def _step(self) -> bool:
        """Do what is owed, or process the next event. False: idle for long enough."""
        owed = core.owes(self._log.state)
        if owed == "call":
            draft: Draft | None = self._draft()
        elif owed == "take":
            draft = await self._take()
        elif owed == "end":
            draft = core.end_lost(str(self.key), self._log.state, self._moments.now(), self._policy)
        else:
            await self._wakes.settle()
            message = await self._next_or_idle()
            if message is None:
                return False
            draft = await self._fold(message)
        while draft is not None:
            draft = await self._conclude(draft)
        return True

    def _draft(self) -> Draft:
        return Draft(str(self.key), self._log.state, self._moments.now(), self._policy)

    async def _next_or_idle(self) -> Message | None:
        while (message := await self._incoming.next_within(self._resources.idle_release_s)) is None:
            # A held wake tells of an event that the follower is still to bring...
            await self._wakes.drop_empty()
            if self._wakes.held is None:
                self.is_closing = True
                return None
        return message

    async def _fold(self, message: Message) -> Draft | None:
        """Decode and fold one event; a poison one is dead-lettered and passed over."""
        crash.point("cortex.event.read")
        if message.seq <= self._log.state.position:
            return None
        self._span.begin(message.header(trace.HEADER))
        try:
            event = self._incoming.decode(message)
        except InvalidInput as error:
            await self._poison(message, str(error))
            return None
        if isinstance(event, ToolResultEvent):
            self._memory.may_have_saved()
        moment = await self._moments.of(event)
        draft = core.fold(str(self.key), self._log.state, message.seq, event, moment, self._policy)
        self._log.history.take_out(draft.unsaid)  # the model is asked before the turn is stored
        return draft

    async def _poison(self, message: Message, reason: str) -> None:
        await session_log.bury(self._bus, self.key, message, reason, self._clock, self._counts)
        cause, event = self._incoming.decode_poison(message)
        state, moment = self._log.state, await self._moments.of(event)
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
                await self._commit(
                    core.give_up(str(self.key), state, self._moments.now(), self._policy)
                )
                return None
        moment = await self._moments.of_taken(events[0])
        return core.take(str(self.key), state, events, moment, self._policy)

    async def _queued_event(self, queued: Queued) -> Event:
        """Return what a queued entry points to. Raises: InvalidInput."""
        message = await self._bus.get_of(self.key, queued.seq)
        if message is None:
            raise InvalidInput("queue", f"event {queued.seq} is gone")
        self._span.begin(message.header(trace.HEADER))
        return self._incoming.decode(message)

    async def _conclude(self, draft: Draft) -> Draft | None:
        """Ask the model if the draft needs it, then commit. Returns a draft to go on with."""
        if not draft.wants_call or is_rewinding(draft.state, draft.ordinal):
            await self._commit(draft)
            return None
        question = await draft.profile.question(self._live, draft)
        if question is not None:
            return await self._think(draft, question)
        if draft.is_dirty:
            await self._commit(draft)
        return None

    # ------------------------------------------------------------ thinking

    async def _think(self, draft: Draft, question: ModelQuestion) -> Draft | None:
        """Call the model while folding what comes in meanwhile (SPEC S-13)."""
        crash.point("cortex.model.before_call")
        if await session_log.has_more_events(self._bus, self.key, draft.state):
            _, draft = await self._meanwhile(draft, await self._incoming.next())
            return draft if draft.is_dirty else None
        call = asyncio.ensure_future(question.ask())
        try:
            await asyncio.sleep(0)
            while not call.done() and (message := await self._incoming.during(call)) is not None:
                is_over, draft = await self._meanwhile(draft, message)
                if is_over:
                    return draft if draft.is_dirty else None
            draft.moment = await self._moments.after(call)
            try:
                draft.inputs.answer = call.result()
                question.apply(draft, draft.inputs.answer)
            except ModelError as error:
                draft.inputs.failure = error
                (question.fail or self._live.fail)(draft, error)
            core.announce(draft, notices_of(call))
        finally:
            call.cancel()
        crash.point("cortex.model.after_call")
        if draft.is_dirty:
            await self._commit(draft)
        return None

    async def _meanwhile(self, draft: Draft, message: Message) -> tuple[bool, Draft]:
        """Fold an event that came during a call -> (whether it ends the call, what goes on)."""
        if draft.is_dirty and not await self._commit(draft):
            return True, self._draft()  # somebody else goes on from here
        loop, span = self._log.state.loop, self._span.current
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
            self._span.current = span  # what was folded has one of its own
        return self._log.state.loop != loop, self._draft()

    # ------------------------------------------------------------ committing

    async def _commit(self, draft: Draft) -> bool:
        """Commit the draft as one turn.

        False: another replica was first; the draft is thrown away and the log read anew.
        """
        history_from = draft.history_from or self._log.first_turn(draft)
        turn = draft.finish(self._resources.new_id(), history_from=history_from)
        turn = msgspec.structs.replace(turn, letters=self._log.history.heads(turn))
        try:
            seq = await session_log.commit(
                self._bus, self.key, turn, self._log.turn_seq, self._span.header
            )
        except session_log.CommitConflict:
            log.info("conflict", action="cortex.conflict", session=str(self.key))
            self._counts.count(metrics.CONFLICTS)
            await self._load()
            return False
        self._log.turn_seq = seq
        self._log.state = session_log.state_after(turn, seq)
        await session_log.grow(self._bus, self.key, self._log.history, seq, turn)
        self.progress.moved(turn)
        self._span.end(turn)
        await self._wakes.settle()
        return True
