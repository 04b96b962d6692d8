"""Carrying out what is quick: sessions started, told and ended, calls withdrawn, the board.

Each may be repeated, by this replica or another, and by any number of them at once: what makes a
repeat harmless is named with each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

import structlog

from vigil import crash
from vigil.contracts import (
    Approval,
    BoardChange,
    BoardEntry,
    CancelCall,
    Control,
    Job,
    SendVerdict,
    SlotRun,
    SpawnSession,
    TellParent,
    TellParentPayload,
    TellPerson,
    ToolResultEvent,
    decode_board,
    encode,
)
from vigil.contracts.board import BoardAction
from vigil.contracts.effects import RaiseBudget
from vigil.contracts.events import AGENT_MESSAGE
from vigil.errors import InvalidInput, Unavailable, WrongLastSequence
from vigil.observe import trace
from vigil.runtime import Context
from vigil.settings import switches
from vigil.settings.models import raises
from vigil.settings.models.raises import Raise
from vigil.subjects import EXECUTOR_CANCEL, SessionKey

from . import work
from .board.changes import BoardChanges
from .board.slots import RunEnds
from .board.tasks import TaskEnds
from .board.verdicts import VerdictLessons
from .config import ExecutorLimits

log = structlog.get_logger("vigil.executor")

BOARD = "BOARD"


class Carrying:
    """Carries out quick effects.

    Args:
        withdraw: ends a call that this replica has in hand.
    """

    def __init__(
        self, context: Context, limits: ExecutorLimits, withdraw: Callable[[str], None]
    ) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._limits = limits
        self._withdraw = withdraw
        self._teams = context.settings.config.teams
        self._board = BoardChanges(context)
        self._tasks = TaskEnds(context)
        self._verdicts = VerdictLessons(context)
        self._slots = RunEnds(context)

    async def carry_out(self, key: SessionKey, effect: work.Quick, turn_seq: int) -> None:
        """Do what an effect asks; may be repeated.

        Raises:
            InvalidInput: it asks for what can't be.
            Unavailable: try again later.
            BusError: the broker refused.
        """
        match effect:
            case SpawnSession():
                await self._spawn(key, effect, turn_seq)
            case TellParent(payload=TellParentPayload(task_id=str(task_id))) if task_id:
                await self._tasks.end(key, effect, task_id)
            case TellParent(payload=TellParentPayload(slot=SlotRun() as slot)):
                await self._slots.end(key, effect, slot)
            case TellParent():
                await self._report(key, effect)
            case TellPerson():
                await self._notify_person(key, effect)
            case SendVerdict():
                await self._send_verdict(key, effect)
            case RaiseBudget():
                await self._raise_budget(key, effect)
            case CancelCall():
                await self._cancel(key, effect)
            case BoardChange():
                await self._on_board(key, effect, turn_seq)
            case _:
                assert_never(effect)

    async def _spawn(self, key: SessionKey, effect: SpawnSession, turn_seq: int) -> None:
        """Store the child's first event. A repeat finds it there, or a cancel that was faster."""
        start = work.start_of(key, effect, turn_seq, now=self._clock.now())
        child = work.child_of(key, effect)
        try:
            await self._bus.publish(
                child.in_event("control"),
                encode(start),
                _headers(),
                expect=0,
                expect_subject=child.in_all,
            )
        except WrongLastSequence:
            log.info("started before", action="executor.spawned", session=str(child))
        crash.point("executor.spawn.after")

    async def _report(self, key: SessionKey, effect: TellParent) -> None:
        """Store what the parent is told. The event of a repeat has the same id."""
        parent = work.relative_of(key, effect.payload.parent)
        event = work.report_of(parent, effect, now=self._clock.now())
        kind = "tool_result" if isinstance(event, ToolResultEvent) else "control"
        await self._bus.publish(parent.in_event(kind), encode(event), _headers(), msg_id=event.id)
        crash.point("executor.tell.after")

    async def _notify_person(self, key: SessionKey, effect: TellPerson) -> None:
        """Store what the person is to be told, where they are. A repeat finds it there."""
        is_for_agent = effect.payload.told.what == AGENT_MESSAGE
        home = work.home_of(key, effect.payload.home, self._teams, is_for_agent=is_for_agent)
        event = work.notification_of(home, effect.id, effect.payload.told, now=self._clock.now())
        name = effect.payload.once or effect.id
        try:
            await self._bus.publish(
                home.in_event(f"told.{name}"), encode(event), _headers(), expect=0
            )
        except WrongLastSequence:
            log.info("told before", action="executor.told", session=str(home))
        crash.point("executor.tell_person.after")

    async def _send_verdict(self, key: SessionKey, effect: SendVerdict) -> None:
        """Store what the person decided with the session that asked; of a repeat nothing is left
        to decide."""
        asker = work.relative_of(key, effect.payload.session_key)
        event = work.verdict_of(asker, effect, now=self._clock.now())
        await self._bus.publish(
            asker.in_event("control"), encode(event), _headers(), msg_id=event.id
        )
        crash.point("executor.tell.after")

    async def _raise_budget(self, key: SessionKey, effect: RaiseBudget) -> None:
        """Raise the person's own limit of a day; a repeat finds it raised."""
        asked, now = effect.payload, self._clock.now()
        wanted = Raise(day=asked.day, times=asked.times, at=now, by=asked.by)
        held = await switches.put_raise(
            self._bus, raises.of_person(key.user), wanted, is_least=True
        )
        log.info("budget raised", action="executor.raised", by=held.by, times=held.times)
        crash.point("executor.raise_budget.after")

    # ------------------------------------------------------------ ending

    async def _cancel(self, key: SessionKey, effect: CancelCall) -> None:
        if effect.payload.child:
            child = work.relative_of(key, effect.payload.child)
            await self._end_child(child, work.cancel_of(child, effect, now=self._clock.now()))
        else:
            await self._end_call(key, effect)
        crash.point("executor.cancel.after")

    async def _end_child(self, child: SessionKey, event: Control) -> None:
        """Tell a child to end; if it hasn't begun, this keeps it from ever beginning."""
        if not child.is_system:
            raise InvalidInput("child", f"{child} was not started by a session")
        await self._bus.append(
            child.in_event("control"),
            encode(event),
            _headers(),
            among=child.in_all,
            msg_id=event.id,
        )

    async def _end_call(self, key: SessionKey, effect: CancelCall) -> None:
        """Claim a call for nobody; if somebody has it, tell them all to end it."""
        call_id = work.check_call_id(effect.payload.call_id)
        claim = work.withdrawn(key, effect, now=self._clock.now())
        try:
            await self._bus.publish(key.call(call_id), encode(claim), _headers(), expect=0)
        except WrongLastSequence:
            message = work.Withdrawal(call_id=call_id, session_key=str(key))
            await self._bus.send(EXECUTOR_CANCEL, work.encode_withdrawal(message))
        self._withdraw(call_id)

    # ------------------------------------------------------------ the board

    async def _on_board(self, key: SessionKey, effect: BoardChange, turn_seq: int) -> None:
        entity = effect.payload.entity
        if isinstance(entity, BoardAction):
            await self._board.note(key, effect, entity)
        elif isinstance(entity, Approval | Job):
            await self._change(key, effect, turn_seq)
            if isinstance(entity, Approval):
                await self._verdicts.take(key, entity, effect.id)
        else:
            await self._board.change(key, effect, entity)

    async def _change(self, key: SessionKey, effect: BoardChange, turn_seq: int) -> None:
        """Store what an entity is now, unless a newer turn was faster."""
        subject = work.board_subject(key, effect)
        entry = work.entry_of(effect, turn_seq, now=self._clock.now())
        for _ in range(self._limits.board_tries_max):
            found = await self._bus.get_last(BOARD, subject)
            if not work.is_newer(entry, None if found is None else _stored(found.data)):
                break
            try:
                await self._bus.publish(
                    subject, encode(entry), _headers(), expect=0 if found is None else found.seq
                )
                break
            except WrongLastSequence:
                continue  # another one was stored meanwhile: look which is newer
        else:
            raise Unavailable(f"{subject}: others write there all the time")
        crash.point("executor.board.after")


def _stored(data: bytes) -> BoardEntry | None:
    """Return what stands on the board; None: it can't be read, so it is replaced."""
    try:
        return decode_board(data)
    except InvalidInput as error:
        log.error("entry not readable", action="executor.board", error=str(error))
        return None


def _headers() -> dict[str, str]:
    return {trace.HEADER: trace.passed_on(trace.current.get())}
