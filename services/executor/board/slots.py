"""Runs of the timetable, ended: who is to know is told, and the ledger has the end (SPEC J-4).

What holds is the ledger: a run that is still open there ends once, and one that was given up as
lost tells nothing any more. The result is told before the end is written down, under the effect's
id, so a repeat between the two tells nothing twice.

Why not the scheduler, which writes all else in the ledger: the entry holds what only this does or
finds out (whether the result was told, what became of a bulletin, the newest facts, the cost, read
turn by turn). Of the scheduler one replica is active, which keeps the time of everybody: 500 rows
that end at once would be some thousand requests of its, or else a record more between the two, and
a time in which a result is told and `vigil why` has its run open. Each entry expects the one before
it (ADR 28), so two writers can't contradict one another.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import structlog
from msgspec.structs import replace

from vigil import crash
from vigil.contracts import (
    SlotEntry,
    SlotRun,
    TellParent,
    ToldPayload,
)
from vigil.contracts.board import (
    Delivery,
    Ledger,
    OpenRun,
)
from vigil.contracts.session_kinds import SESSION_KINDS
from vigil.errors import Unavailable, WrongLastSequence
from vigil.runtime import Context
from vigil.subjects import Scope, SessionKey, check_part
from vigil.timetable import reasons
from vigil.timetable.ledger import FAILURES_MAX, ended, put_off
from vigil.timetable.log import Placed, SlotLog
from vigil.words.amounts import span_of

from .. import work
from .bulletins import BulletinShelf
from .cost import cost_of_run
from .fact_notifications import FactNotifier
from .facts import FactStore
from .receivers import called, channel_of, homes_for, put, reaches_one

log = structlog.get_logger("vigil.executor")

TRIES_MAX: Final = 20
REASON_LENGTH_MAX: Final = 500
"""Characters that the ledger keeps of why a run failed."""
TOO_LONG: Final = "it took longer than the {time} that it has"
TRIED: Final = "{problem}. It was tried {count} times."
WHAT: Final = "cron"
"""What its result is, where it is told."""


class RunEnds:
    """Ends runs."""

    def __init__(self, context: Context) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._config = context.settings.config
        self._log = SlotLog(context.bus)
        self._bulletins = BulletinShelf(context)
        self._facts = FactStore(context)
        self._notifier = FactNotifier(context)

    async def end(self, key: SessionKey, effect: TellParent, slot: SlotRun) -> None:
        """Tell what came of a run and write down its end; may be repeated.

        Raises:
            InvalidInput: its target is somebody else's.
            Unavailable: try again later.
        """
        row = check_part("row", slot.row)
        for _ in range(TRIES_MAX):
            last = await self._log.last(key.scope, row)
            run = _open_run(key, last.ledger, slot)
            if run is None:
                log.info("ended before", action="executor.slot", session=str(key))
                return
            now = self._clock.now()
            problem = _problem(effect, slot, run, now)
            if (waiting := _put_off(effect, slot, run, problem, now)) is not None:
                if await self._is_stored(key.scope, last, waiting):
                    return
                continue
            if problem and run.tries:
                problem = TRIED.format(problem=problem.rstrip("."), count=run.tries + 1)
            if effect.payload.bulletin is not None and not problem:
                problem = await self._bulletins.put(key, effect, effect.payload.bulletin)
            known = None if problem else await self._facts.take(key, effect, slot, run.at)
            is_for_one = reaches_one(self._config, key, slot)
            message = report_of(key, effect, slot, problem, last.ledger, is_for_one=is_for_one)
            if message is not None and known is not None and is_for_one:
                message = replace(message, facts=known.facts)
            homes = () if message is None else homes_for(self._config, key, slot)
            if message is not None:
                await self._notify(homes, effect, message)
            if known is not None and is_for_one:
                await self._notifier.notify(
                    key, effect.id, slot, known, is_told=message is not None
                )
            crash.point("executor.slot.told")
            delivery: Delivery = "silent" if message is None else "told"
            entry = ended(
                row,
                run,
                now,
                problem=problem,
                delivery=delivery,
                report=effect.payload.report,
                next_s=0 if problem else effect.payload.next_s,
                facts=await self._facts.of_run(key, slot, known),
                cost=await cost_of_run(self._bus, key, effect.id),
                told=effect.id if homes else "",
                told_to=str(homes[0]) if len(homes) == 1 else "",
                told_seq=0 if problem else slot.told_seq,
                is_skipped=effect.payload.is_over_budget,
            )
            if await self._is_stored(key.scope, last, entry):
                return
        raise Unavailable(f"{row}: others write its ledger all the time")

    async def _is_stored(self, whose: Scope, last: Placed, entry: SlotEntry) -> bool:
        """Store an entry; whether nobody stored another meanwhile."""
        try:
            await self._log.append(whose, last, entry)
        except WrongLastSequence:
            return False
        crash.point("executor.slot.ended")
        return True

    async def _notify(
        self, homes: tuple[SessionKey, ...], effect: TellParent, message: ToldPayload
    ) -> None:
        """Tell the conversation that the row names, or the owner's home."""
        for home in homes:
            event = work.notification_of(home, effect.id, message, now=self._clock.now())
            await put(self._bus, event, effect.id)


def _open_run(key: SessionKey, ledger: Ledger, slot: SlotRun) -> OpenRun | None:
    name = slot.due_at, slot.is_by_hand, str(key)
    found = ((one.due_at, one.is_by_hand, one.session) for one in ledger.running)
    return next((r for r, n in zip(ledger.running, found, strict=True) if n == name), None)


def _problem(effect: TellParent, slot: SlotRun, run: OpenRun, now: datetime) -> str:
    """Return why a run failed; empty: it didn't."""
    if effect.payload.state == "done":
        return ""
    if now - run.at > timedelta(seconds=slot.timeout_s):
        unanswered = effect.payload.content.partition("\n\n")[0]
        why = f". {unanswered}" if unanswered.startswith(reasons.UNANSWERED) else ""
        return TOO_LONG.format(time=span_of(slot.timeout_s)) + why[:REASON_LENGTH_MAX]
    return effect.payload.content[:REASON_LENGTH_MAX] or "it gave no reason"


def _put_off(
    effect: TellParent, slot: SlotRun, run: OpenRun, problem: str, now: datetime
) -> SlotEntry | None:
    """Return the entry by which a run is begun again later, of which nobody is told now; None: it
    ends."""
    if not effect.payload.is_unanswered or slot.again_until is None:
        return None
    return put_off(slot.row, run, now, slot.again_until, problem)


def report_of(
    key: SessionKey,
    effect: TellParent,
    slot: SlotRun,
    problem: str,
    ledger: Ledger,
    *,
    is_for_one: bool,
) -> ToldPayload | None:
    """Return what is told of a run that ended; None: nothing, it had nothing to say (SPEC J-5).

    A result is told whole, marked if outside content had a part; a failure without what a model
    made of outside content. Members of a team, whose own homes are told, are told that there is
    something, by the row's id.

    Args:
        is_for_one: as `reaches_one` says.
    """
    payload = effect.payload
    if payload.is_over_budget:
        return None  # whose cap it is was told that once
    if payload.is_interrupted and ledger.cycles is not None:
        return None  # services were restarted; the next one comes by itself, and the ledger has it
    kind = SESSION_KINDS[key.kind].run
    if not kind or (not problem and not payload.content):
        return None
    row = called(slot, is_for_one=is_for_one)
    name = kind.format(name=row, agent=key.agent)
    if problem:
        text = _failure(name, slot, "" if payload.is_tainted or not is_for_one else problem, ledger)
    else:
        text = payload.content if is_for_one else f"{name} has a result{_where(slot)}"
    is_whole = is_for_one and not problem
    return ToldPayload(
        origin=str(key),
        text=text if is_for_one else f"{key.agent}: {text}",
        what=WHAT,
        title=row,
        row=slot.row if problem else "",
        is_ordered=slot.is_ordered,
        is_tainted=payload.is_tainted and is_whole,
        channel=channel_of(slot),
    )


def _failure(name: str, slot: SlotRun, problem: str, ledger: Ledger) -> str:
    why = f": {problem.rstrip('.')}." if problem else _where(slot)
    count = ledger.failures + 1
    is_of_system = ledger.cycles is not None  # those wait by themselves
    if slot.is_by_hand or count % FAILURES_MAX or is_of_system:
        return f"{name} failed{why}"
    last = f" It failed {count} times, one after the other, so it's paused now."
    return f"{name} failed{why}{last}"


def _where(slot: SlotRun) -> str:
    return f" (`vigil cron history {slot.row[:8]}`)."
