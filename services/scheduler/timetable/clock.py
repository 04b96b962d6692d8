"""The clock of the timetable: decides about each slot as it comes due, and has runs begin and end.

Only the active scheduler does (LOOPS L-2). What it decides is an entry of the row's ledger, stored
if nobody stored another meanwhile. An entry that says ``running`` is the order to run: the first
event of the session is stored after it, if there is none; whoever is active next finds the run
open, and stores the event again. The end is the executor's to write; a run that has had its time
is told to end, and one that gives no end then is lost.

Nothing here outlives the term: rows and ledger are read again at the next.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import structlog
from msgspec.structs import replace

from vigil import crash
from vigil.board.entries import STREAM as BOARD
from vigil.board.kept import FACTS, ROWS, KeptBoard
from vigil.bus.bus import Message
from vigil.clock import PACE_S, until_next
from vigil.contracts import Change, SlotEntry
from vigil.contracts.base import NEVER, SET_BACK_MIN
from vigil.contracts.board import AfterSchedule, LastSeen, OpenRun, is_asked_first
from vigil.errors import InvalidInput, VigilError, WrongLastSequence
from vigil.observe import warmth
from vigil.runtime import Context
from vigil.settings.config import Config
from vigil.subjects import ANYBODY, board_of
from vigil.timetable.ledger import kept
from vigil.timetable.log import STREAM, placed
from vigil.timetable.probe import CONCURRENCY_MAX

from ..absences.log import NotifyingLog
from ..promotion import PauseSwitch
from ..warmth import WarmGate
from . import decide, events, kinds, quiet
from .agenda import QUIET_S, RowAgenda
from .check_outcome import CheckOutcome
from .known import KnownRow
from .orders import RunOrders
from .row_kind import CheckContext

log = structlog.get_logger("vigil.scheduler")

ROWS_OF_ALL: Final = board_of(ANYBODY, ROWS.name)
SLOTS_OF_ALL: Final = ANYBODY.slot()
FACTS_OF_ALL: Final = board_of(ANYBODY, FACTS.name)
AT_ONCE: Final = 32
"""Rows that are visited side by side."""
AHEAD_MAX: Final = 1000
"""Entries of a row that are looked through after the clock was set back."""
POLL_S: Final = 1.0
"""How soon what couldn't be done is tried again, and the clock is read."""
ALL_PAUSED: Final = "what is done unasked was paused"


class TimetableClock:
    """Decides about the slots of all rows, for one term."""

    def __init__(self, context: Context, pause: PauseSwitch, gate: WarmGate) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._pause = pause
        self._gate = gate
        self._settings = context.settings
        self._kept = timedelta(days=context.settings.config.retention.slots_days)
        self._board = KeptBoard(context.bus, ROWS)
        self._log = NotifyingLog(context)
        self._orders = RunOrders(context.bus)
        self._facts = context.facts
        self._unwritten: set[str] = set()
        """Rows of bulletins of which none was written yet."""
        self._known: dict[str, KnownRow] = {}
        self._followers: dict[str, set[str]] = {}
        """Of each row those that follow it, or did."""
        self._agenda = RowAgenda()
        self._fact_board = KeptBoard(context.bus, FACTS)
        self._behind = {ROWS_OF_ALL, SLOTS_OF_ALL, FACTS_OF_ALL}
        """What isn't read to its end."""
        self._visited_at = NEVER
        self._wake = asyncio.Event()
        self._group = asyncio.TaskGroup()
        self._probes = asyncio.Semaphore(CONCURRENCY_MAX)

    async def run(self) -> None:
        """Follow rows and ledger, and decide, until cancelled. Raises: Unavailable, BusError."""
        try:
            async with self._group as group:
                group.create_task(self._follow(BOARD, ROWS_OF_ALL, 1, self._take_row))
                group.create_task(self._follow(STREAM, SLOTS_OF_ALL, 0, self._take_entry))
                group.create_task(self._follow(BOARD, FACTS_OF_ALL, 0, self._visit_followers))
                for visits in (self._visit_once_warm(), self._visit_where_owners_move()):
                    group.create_task(visits)
                while True:
                    await self._wait()
                    if not self._behind:
                        await self._visit_due()
        finally:
            self._facts.pop(warmth.OWED, None)

    async def _follow(
        self, stream: str, where: str, start: int, take: Callable[[Message], str]
    ) -> None:
        follower = await self._bus.follow(stream, [where], start)
        try:
            while True:
                is_quiet = where not in self._behind
                message = await follower.next_within(QUIET_S if is_quiet else POLL_S)
                if message is not None:
                    self._agenda.put(take(message), self._clock.now())
                if message is None or message.pending == 0:
                    self._behind.discard(where)
                    self._wake.set()
        finally:
            await follower.close()

    async def _visit_once_warm(self) -> None:
        """Visit all rows when what is due may begin."""
        if not self._gate.is_open:
            await self._gate.opened.wait()
            for id_ in self._known:
                self._agenda.put(id_, self._clock.now())
            self._wake.set()

    async def _visit_where_owners_move(self) -> None:
        """Visit the rows of whoever moves to another zone."""
        while True:
            await self._pause.changed_again()
            for id_, one in self._known.items():
                if one.revisions and one.has_moved(self._pause.zone_of(one.row.owner)):
                    self._agenda.put(id_, self._clock.now())
            self._wake.set()

    # ------------------------------------------------------------ what is known

    def _take_row(self, message: Message) -> str:
        """Know a row as it is now; what can't be read changes nothing."""
        found, id_ = self._board.read(message), message.subject.rpartition(".")[2]
        known = self._known.setdefault(id_, KnownRow())
        is_newer = not known.revisions or known.revisions[-1].number < message.seq
        if found is not None and is_newer:
            known.revisions.append(found)
            if isinstance(found.entity.schedule, AfterSchedule):
                self._followers.setdefault(found.entity.schedule.row, set()).add(id_)
        return id_

    def _take_entry(self, message: Message) -> str:
        id_ = message.subject.rpartition(".")[2]
        known = self._known.setdefault(id_, KnownRow())
        if message.seq > known.last.seq:
            try:
                known.place(placed(message))
            except InvalidInput as error:
                log.error("entry not readable", action="scheduler.ledger", error=str(error))
        return self._visit_followers(message)

    def _visit_followers(self, message: Message) -> str:
        """Have the rows visited that follow what a message is of, a row or a source of facts."""
        id_ = message.subject.rpartition(".")[2]
        for follower in self._followers.get(id_, ()):
            self._agenda.put(follower, self._clock.now())
        return id_

    def _forget_erased(self) -> None:
        """Forget the rows of people who are being erased: nothing of theirs is written any more."""
        for id_, known in list(self._known.items()):
            if known.revisions and self._pause.is_erasing(known.row.owner):
                del self._known[id_]
                self._unwritten.discard(id_)
                self._agenda.forget(id_)

    # ------------------------------------------------------------ the agenda

    async def _wait(self) -> None:
        """Wait until something is due, or has changed; at most a moment."""
        wait_s = until_next(min(POLL_S, PACE_S.get()), asyncio.get_running_loop().time())
        if not self._behind and (due_at := self._agenda.next_at()) is not None:
            wait_s = min(wait_s, (due_at - self._clock.now()).total_seconds())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(wait_s, 0.0)):
                await self._wake.wait()
        self._wake.clear()

    async def _visit_due(self) -> None:
        """Visit each row whose turn it is."""
        if self._pause.is_erasing_anybody:
            self._forget_erased()
        now = self._clock.now()
        for id_ in self._known if self._visited_at - now > SET_BACK_MIN else ():
            self._agenda.put(id_, now)
        self._visited_at = now
        while due := self._agenda.due(now, AT_ONCE):
            async with asyncio.TaskGroup() as group:
                for id_ in due:
                    if id_ in self._known:  # it may be forgotten meanwhile
                        group.create_task(self._visit(id_, self._known[id_], now))

    async def _visit(self, id_: str, known: KnownRow, now: datetime) -> None:
        """Do what is to be done for a row; what fails is tried again in a moment."""
        if not known.revisions:
            return
        again = now + timedelta(seconds=POLL_S)
        try:
            await self._decide(known, now)
            at = known.next_at(now)
        except WrongLastSequence:
            at = again  # the change comes by itself
        except VigilError as error:
            log.info("not now", action="scheduler.slot", row=id_, error=str(error))
            at = again
        if at is not None:
            self._agenda.put(id_, max(at, again) if at <= now else at)
        self._observe_owed(id_, known)

    def _observe_owed(self, id_: str, known: KnownRow) -> None:
        """Tell of how many people the first bulletin isn't written yet (SPEC C-3)."""
        (self._unwritten.add if known.lacks_bulletin else self._unwritten.discard)(id_)
        self._facts[warmth.OWED] = len(self._unwritten)

    # ------------------------------------------------------------ one row

    async def _decide(self, known: KnownRow, now: datetime) -> None:
        # The oldest that is known: what a newer revision is due at may be undecided.
        ledger = kept(known.revisions[0].entity, known.last.ledger, now - self._kept)
        known.last = known.last._replace(ledger=ledger)
        if decide.is_ahead(known.ledger, now):
            await self._set_back(known, now)
        runs = {run.session: run for run in known.last.ledger.running}
        is_alone = kinds.kind_of(known.row.work).start is not None  # each run a session of its own
        for entry in known.lost(now, is_alone=is_alone):
            if is_alone:
                await self._end(known, runs[entry.session], now)  # or it would be worked in vain
            await self._append(known, entry)
        # Before any is told to end: one that is told so first would never begin, and have no end.
        await self._begin_all(known, now)
        for run in decide.overdue(known.row, known.last.ledger, now):
            if is_alone and run.session in known.begun:
                await self._end(known, run, now)
        await self._store_quiet(known, now)
        if not self._gate.is_open:
            return  # nothing new begins yet; what is due is decided in a moment
        refusal = ALL_PAUSED if self._pause.is_on_for(known.scope, now) else ""
        for entry in decide.begun_again(known.row, known.last.ledger, now, refusal):
            await self._append(known, entry)
        followed = (self._log, self._fact_board, known.scope, known.revisions, known.ledger)
        ends = await known.followed.read(*followed)
        made = decide.decisions(known.pieces(), known.ledger, now, refusal, ends)
        for entry, seen, _ in self._checked(known, made, now):
            await self._append(known, entry, seen)
        await self._store_quiet(known, now)
        await self._begin_all(known, now)
        row, why = known.wanted(self._pause.zone_of(known.row.owner), now)
        if row != known.row:
            change = Change(by="scheduler", why=why)
            await self._board.replace(known.revisions[-1].number, row, change, now)

    async def _set_back(self, known: KnownRow, now: datetime) -> None:
        """Have a row go on by the clock as it is now."""
        ahead: list[SlotEntry] = []
        async for entry in self._log.newest(known.scope, known.row.id):
            if (entry.due_at <= now and not entry.is_by_hand) or len(ahead) >= AHEAD_MAX:
                break
            ahead.append(entry)
        entry = decide.set_back(known.row, known.ledger, ahead, now)
        through = str(entry.set_back_from)
        log.warning("clock set back", action="scheduler.clock", row=entry.row, through=through)
        await self._append(known, entry)

    async def _append(
        self, known: KnownRow, entry: SlotEntry, seen: LastSeen | None = None
    ) -> None:
        """Store an entry; one for which there was nothing new waits for others like it.

        Args:
            seen: what it was decided by. It's known only with the entry: of a change that isn't
                stored, the next check tells again.
        """
        is_quiet = entry.state == "skipped" and entry.reason in kinds.quiet_reasons()
        longer = quiet.joined(known.quiet, entry) if is_quiet else None
        waiting = known.quiet
        if longer is None and waiting is not None:
            await self._store(known, waiting)
            known.quiet = None
        if not is_quiet:
            await self._store(known, entry, seen)
        else:
            known.quiet = longer or entry
        known.seen = seen or known.seen

    async def _store_quiet(self, known: KnownRow, now: datetime) -> None:
        """Store an entry that waits, unless there may soon be others like it."""
        waiting = known.quiet
        following = decide.next_at(known.row, known.ledger, now)
        if waiting is not None and quiet.is_due(waiting, following):
            await self._store(known, waiting)
            known.quiet = None

    async def _store(self, known: KnownRow, entry: SlotEntry, seen: LastSeen | None = None) -> None:
        ledger = replace(known.last.ledger, seen=seen or known.ledger.seen)
        known.place(await self._log.append(known.scope, known.last._replace(ledger=ledger), entry))
        crash.point("scheduler.slot.decided")

    def _checked(self, known: KnownRow, made: list[SlotEntry], now: datetime) -> list[CheckOutcome]:
        """Return the entries of a row. Where something has to be new for a run, it's checked
        first, and nothing is decided meanwhile."""
        begun = next((one for one in made if one.state == "running"), None)
        decided = kinds.kind_of(known.row.work).decide
        if begun is None or decided is None or not is_asked_first(known.row.work):
            return [CheckOutcome(one) for one in made]
        outcome = decided(known, begun, known.take_answer(), now)
        if outcome is None:
            if not known.is_checking:
                known.is_checking = True
                self._group.create_task(self._check(known, begun, now))
            return []
        if outcome.prepared is not None:
            known.prepared[outcome.entry.session] = outcome.prepared
        return [outcome if one is begun else CheckOutcome(one) for one in made]

    async def _check(self, known: KnownRow, begun: SlotEntry, now: datetime) -> None:
        """Check what is new; if that can't be done, it's done again."""
        check = kinds.kind_of(known.row.work).check
        if check is None:
            raise AssertionError(f"{begun.row}: nothing has to be new for it")
        known.checked_from = known.told_seq
        try:
            async with self._probes:
                known.answer = await check(self._context(known), known, begun, now)
            crash.point("scheduler.slot.looked")
        except VigilError as error:
            log.info("can't look", action="scheduler.look", row=begun.row, error=str(error))
            self._agenda.put(begun.row, self._clock.now() + timedelta(seconds=POLL_S))
        else:
            self._agenda.put(begun.row, self._clock.now())
        finally:
            known.is_checking = False
        self._wake.set()

    async def _begin_all(self, known: KnownRow, now: datetime) -> None:
        for run in known.last.ledger.running:
            await self._begin(known, run, now)

    async def _begin(self, known: KnownRow, run: OpenRun, now: datetime) -> None:
        """Store the first event of a run, unless it's there."""
        if run.session in known.begun:
            return
        kind, prepared = kinds.kind_of(known.row.work), known.prepared.get(run.session)
        if prepared is None and kind.must_prepare(known.row, run):
            self._prepare(known, run)
            return
        if kind.start is None:
            await self._orders.send_tick(events.tick_of(known.row, run, now))
        else:
            given = kind.start(known.row, run, prepared, self._present())
            await self._orders.start(run, events.start_of(known.row, run, now, given))
        known.begun.add(run.session)
        crash.point("scheduler.slot.begun")

    async def _end(self, known: KnownRow, run: OpenRun, now: datetime) -> None:
        if run.session not in known.told_to_end:
            known.note_told(run, await self._orders.end(run, events.end_of(run, now)))

    def _prepare(self, known: KnownRow, run: OpenRun) -> None:
        """Have read what a run begins with, unless it is being read."""
        if run.session not in known.prepared:
            known.prepared[run.session] = None
            self._group.create_task(self._read_for(known, run))

    async def _read_for(self, known: KnownRow, run: OpenRun) -> None:
        prepare = kinds.kind_of(known.row.work).prepare
        if prepare is None:
            raise AssertionError(f"{known.row.id}: nothing is to be read for it")
        try:
            async with self._probes:
                known.prepared[run.session] = await prepare(self._context(known), known, run)
            self._agenda.put(known.row.id, self._clock.now())
        except VigilError as error:
            log.info("can't look", action="scheduler.look", row=known.row.id, error=str(error))
            known.prepared.pop(run.session, None)
            self._agenda.put(known.row.id, self._clock.now() + timedelta(seconds=POLL_S))
        self._wake.set()

    def _context(self, known: KnownRow) -> CheckContext:
        id_, agents, there = known.row.id, self._settings.agents, self._known
        return CheckContext(self._bus, self._present(), agents, lambda: there.get(id_) is known)

    def _present(self) -> Config:
        """Return the configuration as it holds now."""
        return replace(self._settings.config, cortex=self._pause.cortex)
