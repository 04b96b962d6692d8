"""Calls of tools: claimed on the log, run, answered by an event of their session (ARCHITECTURE 4).

The claim is what makes a call run at most once: it is stored with an expectation, so one replica
has it, and it comes before the run. After it comes a look whether the session still waits. Whoever
finds a claim and no result can't know whether the tool ran: an idempotent one runs again, of the
others the session is told that nobody knows.

A call belongs to this process and not to the delivery of its turn: a repeat of the turn finds the
call under way and waits for the same end.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import structlog

from services.executor.presence import Presence
from vigil import crash
from vigil.bus.bus import BusError, Message
from vigil.contracts import CallTool, Tool, decode_call_claim, encode
from vigil.errors import InvalidInput, Unavailable, WrongLastSequence
from vigil.observe import metrics, spans, trace
from vigil.runtime import Context
from vigil.settings.switches import Switches
from vigil.subjects import SessionKey
from vigil.worker import turns
from vigil.worker.open_call import is_awaited

from . import work
from .answers import Answers
from .config import ExecutorLimits
from .grants import GrantChecks
from .places import SharedPlaces, part_of
from .tools.registry import Registry
from .tools.run import Running
from .tools.source import CallTask, ToolOutput

log = structlog.get_logger("vigil.executor")

AMBIGUOUS: Final = (
    "ambiguous: the executor was interrupted while it ran this. Nobody knows whether it was done, "
    "and it was not tried again. Find out what is the case before you repeat it."
)
GIVEN_UP: Final = "The executor could not do this; it was logged."
GONE: Final = "there is no tool {tool!r} at present"
NO_LEAVE: Final = (
    "not run: the standing grant for it doesn't hold ({reason}). Call it again to ask."
)
RISKIER: Final = "the tool {tool!r} is riskier by now than when this was decided; call it again"


class _Place:
    """A call in hand."""

    __slots__ = ("call", "is_begun", "is_withdrawn", "key", "task")

    def __init__(self, key: SessionKey, call: CallTool) -> None:
        self.key = key
        self.call = call
        self.is_begun = False
        """Whether it has been claimed, or is about to be."""
        self.is_withdrawn = False
        self.task: asyncio.Task[None]


class CallsInHand:
    """The calls that this replica has in hand."""

    def __init__(
        self,
        context: Context,
        registry: Registry,
        presence: Presence,
        limits: ExecutorLimits,
        switches: Switches,
    ) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._counts = context.metrics
        self._tracer = context.tracer
        self._instance = context.instance
        self._registry = registry
        self._presence = presence
        self._limits = limits
        self._is_gone = switches.is_gone
        self._answers = Answers(context, limits, switches.is_erasing, switches.trusted)
        self.unkept = self._answers.unkept
        self._running = Running(context, limits)
        self._grants = GrantChecks(context)
        config = context.settings.config.executor
        places = config.calls_at_once_max
        self._shares = SharedPlaces(places, part_of(places, config.calls_at_once_per_user))
        self._places: dict[str, _Place] = {}
        self._unrun: dict[str, None] = {}
        """Calls with a claim of ours, or one that may have been stored, that surely never ran."""
        self._is_stopping = False

    def __len__(self) -> int:
        """How many are in hand."""
        return len(self._places)

    @property
    def running(self) -> int:
        """How many sources are at work."""
        return len(self._running)

    def has_room(self, user: str) -> bool:
        """Whether the calls of another turn may be begun, all of them: in part, and given back, it
        would come again and find those parts in its way."""
        if self._is_stopping or len(self._places) >= self._limits.calls_in_hand_max:
            return False
        theirs = sum(place.key.user == user for place in self._places.values())
        return theirs < self._limits.calls_in_hand_per_user_max

    # ------------------------------------------------------------ in hand

    def begin(self, key: SessionKey, call: CallTool) -> asyncio.Task[None]:
        """Begin a call, or return the task of one that was begun before.

        The task raises Unavailable if the call is to be tried again later; it is cancelled if this
        replica stops.
        """
        place = self._places.get(call.id)
        if place is not None:
            return place.task
        place = self._places[call.id] = _Place(key, call)
        place.task = asyncio.create_task(self._carry_out(key, call, place), name=f"call-{call.id}")
        place.task.add_done_callback(lambda task: self._left(call.id, task))
        return place.task

    def _left(self, call_id: str, task: asyncio.Task[None]) -> None:
        """Let go of a call, also of one that was cancelled before its first step.

        How it ended is looked at here: its turn may have been given back, and nobody wait for it.
        """
        del self._places[call_id]
        if not task.cancelled():
            task.exception()

    def withdraw(self, call_id: str) -> None:
        """End a call that nobody waits for any more, whatever it is at."""
        place = self._places.get(call_id)
        if place is not None and not place.is_withdrawn:
            place.is_withdrawn = True
            place.task.cancel()

    async def withdraw_unawaited(self) -> None:
        """Withdraw what nobody waits for any more, now and then, until cancelled.

        Being told so is what ends a call at once; but a replica that is cut off at that moment
        isn't told.
        """
        while True:
            await asyncio.sleep(self._limits.waiting_poll_s)
            for place in [place for place in self._places.values() if place.is_begun]:
                with contextlib.suppress(Unavailable, BusError):
                    if not await is_awaited(self._bus, place.key, place.call.id):
                        self.withdraw(place.call.id)

    def withdraw_erased(self) -> None:
        """End the calls of people who are being erased."""
        for call_id, place in list(self._places.items()):
            if self._is_gone(place.key):
                self.withdraw(call_id)

    async def erased(self) -> None:
        """Wait until no call of a person who is being erased is at work."""
        places = [place for place in self._places.values() if self._is_gone(place.key)]
        if places:
            await asyncio.wait([place.task for place in places])

    async def stop(self, *, grace_s: float) -> None:
        """Let what runs come to its end, for `grace_s` seconds at most; give back the rest."""
        self._is_stopping = True
        for place in self._places.values():
            if not place.is_begun:
                place.task.cancel()
        tasks = [place.task for place in self._places.values()]
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=grace_s)
        for task in late:
            task.cancel()
        if late:
            log.warning("calls cut off", action="executor.cut_off", calls=len(late))
            await asyncio.wait(late)

    # ------------------------------------------------------------ one call

    async def _carry_out(self, key: SessionKey, call: CallTool, place: _Place) -> None:
        span = self._tracer.begin(trace.current.get())
        trace.current.set(span.header)
        outcome = "given_back"
        try:
            async with self._shares.place(key.user):
                place.is_begun = True
                outcome = await self._settle(key, call, place)
        except asyncio.CancelledError:
            if not place.is_withdrawn:
                raise
            outcome = "cancelled"
            log.info("call ended", action="executor.call_ended", session=str(key), effect=call.id)
        finally:
            self._observe(span, key, call, outcome)

    async def _settle(self, key: SessionKey, call: CallTool, place: _Place) -> str:
        """Do what there is to do about a call; return what came of it.

        Raises:
            Unavailable: try again later.
        """
        if self._is_gone(key):
            return "closed"
        crash.point("executor.call.before_claim")
        claimed = await self._claim(key, call)
        crash.point("executor.call.claimed")
        tool = self._tool(call)
        task = "" if claimed is None else _task_of(claimed)
        # A task is looked after, and not begun again.
        is_idempotent = bool(task) or (tool is not None and tool.is_idempotent)
        if claimed is None:
            next_: work.Next = "run" if await is_awaited(self._bus, key, call.id) else "leave"
        else:
            next_ = await self._judge(key, call, claimed, is_idempotent=is_idempotent)
        match next_:
            case "leave":
                return "closed"
            case "wait":
                raise Unavailable("another replica is at it")
            case "answer":
                await self._answers.store(key, call, ToolOutput(content=AMBIGUOUS, is_error=True))
                return "ambiguous"
            case "run":
                output = await self._run(key, call, self._task(key, call, place, task))
                await self._answers.store(key, call, output)
                self._unrun.pop(call.id, None)
                crash.point("executor.call.answered")
                return "failed" if output.is_error else "answered"

    async def _run(self, key: SessionKey, call: CallTool, task: CallTask) -> ToolOutput:
        """Run it now, this once. Raises: Unavailable, it did not run."""
        # After a pause of this process others may have taken the claim for a dead one's.
        if not self._presence.is_sure:
            raise Unavailable("our own lease ran out")
        found = self._registry.find(call.payload.tool)
        if found is None and task.id:
            raise Unavailable("its server isn't there yet")
        if found is None:
            return ToolOutput(content=GONE.format(tool=call.payload.tool[:100]), is_error=True)
        tool, source = found
        if not work.may_run(call, tool):
            return ToolOutput(content=RISKIER.format(tool=tool.name), is_error=True)
        grant = await self._grants.use(key, call, tool) if call.payload.grant_id else None
        if isinstance(grant, str):
            return ToolOutput(content=NO_LEAVE.format(reason=grant), is_error=True)
        self._unrun.pop(call.id, None)
        output = await self._running.run(source, work.call_of(key, call, tool, grant, task))
        crash.point("executor.call.ran")
        return output

    def _tool(self, call: CallTool) -> Tool | None:
        found = self._registry.find(call.payload.tool)
        return None if found is None else found[0]

    # ------------------------------------------------------------ tasks

    def _task(self, key: SessionKey, call: CallTool, place: _Place, id_: str) -> CallTask:
        """Return what a source is told of the call as a task, and tells."""

        async def begun(found: str) -> None:
            claimed = await self._bus.get_last(key.stream, key.call(call.id))
            if claimed is None or await self._owner(claimed) != "ours":
                raise Unavailable("the claim isn't ours any more")
            await self._publish_claim(key, call, expect=claimed.seq, task=found)
            crash.point("mcp.task.begun")

        return CallTask(id=id_, begun=begun, is_withdrawn=lambda: place.is_withdrawn)

    # ------------------------------------------------------------ claims

    async def _claim(self, key: SessionKey, call: CallTool) -> Message | None:
        """Claim a call; return the claim that was there before, if there was one.

        Raises:
            Unavailable: nobody knows whether it is stored; if it is, it's ours and not run.
        """
        if not self._presence.is_sure:
            raise Unavailable("no lease of our own")
        was_unrun = call.id in self._unrun
        self._note_unrun(call.id)
        try:
            await self._publish_claim(key, call, expect=0)
        except WrongLastSequence:
            claimed = await self._bus.get_last(key.stream, key.call(call.id))
            if claimed is None:
                raise Unavailable("the claim is gone") from None
            if not was_unrun:
                del self._unrun[call.id]
            return claimed
        return None

    def _note_unrun(self, call_id: str) -> None:
        self._unrun[call_id] = None
        while len(self._unrun) > self._limits.unrun_max:
            del self._unrun[next(iter(self._unrun))]  # then it counts as one that may have run

    async def _publish_claim(
        self, key: SessionKey, call: CallTool, *, expect: int, task: str = ""
    ) -> None:
        claim = turns.claim_of(key, call, by=self._instance, now=self._clock.now(), task=task)
        headers = {trace.HEADER: trace.passed_on(trace.current.get())}
        await self._bus.publish(key.call(call.id), encode(claim), headers, expect=expect)

    async def _judge(
        self, key: SessionKey, call: CallTool, claimed: Message, *, is_idempotent: bool
    ) -> work.Next:
        """Decide what becomes of a call that was claimed before. Raises: Unavailable."""
        log.info("claimed before", action="executor.claimed", session=str(key), effect=call.id)
        if not await is_awaited(self._bus, key, call.id):
            return "leave"
        owner = await self._owner(claimed)
        is_unrun = owner == "ours" and call.id in self._unrun
        next_ = work.next_of(
            owner=owner,
            is_unrun=is_unrun,
            is_answered=await self._answers.is_there(key, call, claimed.seq),
            is_idempotent=is_idempotent,
        )
        if next_ == "run" and not is_unrun:
            await self._take_over(key, call, claimed)
        return next_

    async def _take_over(self, key: SessionKey, call: CallTool, claimed: Message) -> None:
        """Claim anew what is to run again, so that one replica does it. Raises: Unavailable."""
        try:
            await self._publish_claim(key, call, expect=claimed.seq, task=_task_of(claimed))
        except WrongLastSequence as error:
            raise Unavailable("another replica took it over") from error

    async def _owner(self, claimed: Message) -> work.Owner:
        """Tell who claimed a call. Raises: Unavailable, nobody can tell now."""
        try:
            claim = decode_call_claim(claimed.data)
        except InvalidInput:
            return "gone"  # whoever it was has not stored it as we would
        if claim.by == work.NOBODY:
            return "nobody"
        if claim.by == self._instance:
            return "ours"
        return "gone" if await self._presence.is_gone(claim.by) else "alive"

    # ------------------------------------------------------------ telling

    async def give_up(self, key: SessionKey, call: CallTool) -> None:
        """Answer with an error what no try could settle. Raises: Unavailable, BusError."""
        await self._answers.store(key, call, ToolOutput(content=GIVEN_UP, is_error=True))
        self._count(call, "failed")

    def _observe(self, span: trace.Span, key: SessionKey, call: CallTool, outcome: str) -> None:
        if outcome == "given_back":
            return
        self._count(call, outcome)
        if self._tracer.is_on:
            self._tracer.end(
                span,
                spans.TOOL,
                spans.of_tool(str(key), call.id, self._name(call), outcome),
                name=f"execute_tool {self._name(call)}",
                error=outcome if outcome in ("failed", "ambiguous") else "",
            )

    def _count(self, call: CallTool, outcome: str) -> None:
        self._counts.count(metrics.EXECUTOR_CALLS, self._name(call), outcome)

    def _name(self, call: CallTool) -> str:
        """Return the tool's name, if there is one of that name: a model may ask for anything."""
        return call.payload.tool if self._tool(call) is not None else "unknown"


def _task_of(claimed: Message) -> str:
    """Return the task that a claim is of; empty: none that is known."""
    with contextlib.suppress(InvalidInput):
        return decode_call_claim(claimed.data).task
    return ""
