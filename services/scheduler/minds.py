"""Keeps the rows by which minds look at goals: each is due when the next goal is (LOOPS L-1).

It follows the goals of all and the ledger. A row whose time has come and isn't decided is left
alone: the clock decides. Nothing here outlives the term.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from datetime import datetime, timedelta
from typing import Final

import structlog
from msgspec.structs import replace

from vigil.board.entries import STREAM as BOARD
from vigil.board.kept import ROWS, KeptBoard
from vigil.board.kinds.goal import GOALS
from vigil.bus.bus import Message
from vigil.contracts import Change, SlotEntry, TimetableRow, decode_slot
from vigil.contracts.board import BoardGoal, MindWork, OnceSchedule
from vigil.errors import InvalidInput, VigilError, WrongLastSequence
from vigil.goals import lifecycle
from vigil.minds import KIND
from vigil.runtime import Context
from vigil.settings.switches import has_mind
from vigil.subjects import ANYBODY, Scope, board_of, token_of
from vigil.teams import holding
from vigil.timetable.log import STREAM as SLOTS

from .promotion import PauseSwitch
from .timetable.agenda import QUIET_S
from .timetable.kinds import mind as minds

log = structlog.get_logger("vigil.scheduler")

POLL_S: Final = 1.0
"""How soon it's tried again what couldn't be done."""
LOOKS_MAX: Final = 16
"""The newest of one goal that are known: more change nothing of what it waits for."""
CHANGE: Final = Change(by="scheduler", why="as its goals are due")


class MindKeeper:
    """Makes and changes those rows, for one term."""

    def __init__(self, context: Context, pause: PauseSwitch) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._config = context.settings.config
        self._pause = pause
        self._tick = timedelta(seconds=self._config.mind.tick_seconds)
        self._goals = KeptBoard(context.bus, GOALS)
        self._rows = KeptBoard(context.bus, ROWS)
        self._known: defaultdict[Scope, dict[str, BoardGoal]] = defaultdict(dict)
        """Goals that are pursued, or weren't reached in time."""
        self._looks: defaultdict[Scope, dict[str, deque[datetime]]] = defaultdict(dict)
        """When looks at goals began, by the goal's id."""
        self._news: defaultdict[Scope, dict[str, datetime]] = defaultdict(dict)
        """When a person changed goals last, by their ids: what was before counts no more."""
        self._ended: dict[Scope, SlotEntry] = {}
        """The newest entry of each mind's ledger that is no beginning."""
        self._behind = {BOARD, SLOTS}
        """What isn't read to its end."""
        self._changed: set[Scope] = set()
        self._meanwhile: set[Scope] = set()
        """Those of whom something changed while what follows from the change before was done."""
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Do so until cancelled. Raises: Unavailable, BusError."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(BOARD, board_of(ANYBODY, GOALS.name)))
            group.create_task(self._follow(SLOTS, ANYBODY.slot()))
            while True:
                await self._wake.wait()
                self._wake.clear()
                if not self._behind:
                    await self._keep_all()

    async def _follow(self, stream: str, where: str) -> None:
        follower = await self._bus.follow(stream, [where], 0)
        try:
            while True:
                is_quiet = stream not in self._behind and not self._changed
                message = await follower.next_within(QUIET_S if is_quiet else POLL_S)
                if message is not None:
                    self._take_in(stream, message)
                if message is None or message.pending == 0:
                    self._behind.discard(stream)
                    if self._changed:
                        self._wake.set()
        finally:
            await follower.close()

    def _take_in(self, stream: str, message: Message) -> None:
        _, agent, owner, *_ = message.subject.split(".")
        whose = Scope(agent, owner)
        if stream == SLOTS:
            self._take_entry(whose, message)
        else:
            self._take_goal(whose, message)

    def _take_goal(self, whose: Scope, message: Message) -> None:
        found = self._goals.read(message)
        if found is None:
            return
        goal, known = found.entity, self._known[whose]
        if lifecycle.is_active(goal) or lifecycle.is_missed(goal, self._last_at(whose)):
            known[goal.id] = goal
            if found.change.by not in (whose.agent, CHANGE.by):
                self._news[whose][goal.id] = found.at
        else:
            known.pop(goal.id, None)
            self._news[whose].pop(goal.id, None)
        self._note_changed(whose)

    def _take_entry(self, whose: Scope, message: Message) -> None:
        if message.subject.rpartition(".")[2] != row_id(whose):
            return
        try:
            entry = decode_slot(message.data)
        except InvalidInput as error:
            log.error("entry not readable", action="scheduler.ledger", error=str(error))
            return
        if entry.state != "running":
            self._ended[whose] = entry
            self._note_changed(whose)
            return
        for id_ in entry.looks:
            self._looks[whose].setdefault(id_, deque(maxlen=LOOKS_MAX)).append(entry.at)

    def _note_changed(self, whose: Scope) -> None:
        self._changed.add(whose)
        self._meanwhile.add(whose)

    def _last_at(self, whose: Scope) -> datetime | None:
        entry = self._ended.get(whose)
        return None if entry is None else entry.at

    async def _keep_all(self) -> None:
        """Have the rows of all of whom something changed as they are to be."""
        for whose in tuple(self._changed):
            if self._pause.is_erasing(whose.owner):
                for about in (self._known, self._looks, self._news):
                    about.pop(whose, None)
                self._changed.discard(whose)
                continue
            self._meanwhile.discard(whose)
            try:
                await self._keep(whose)
                if whose not in self._meanwhile:
                    self._changed.discard(whose)
            except WrongLastSequence:
                pass  # changed elsewhere: once more
            except VigilError as error:
                log.info("not now", action="scheduler.rows", owner=whose.owner, error=str(error))

    async def _keep(self, whose: Scope) -> None:
        """Raises: VigilError."""
        now, entry = self._clock.now(), self._ended.get(whose)
        failures = 0 if entry is None else entry.ledger.failures
        known, looks = self._known[whose], self._looks_of(whose)
        at = minds.next_look_at(
            known.values(), self._last_at(whose), failures, self._tick, now, looks
        )
        is_on = at is not None and has_mind(self._config, whose.agent)
        found = await self._rows.find([whose], row_id(whose))
        if found is None:
            if is_on and at is not None:
                row = self._made(whose, max(at, now), now)
                among = holding(whose.owner, whose.agent)
                await self._rows.create(lambda _: row, among, CHANGE, now)
            return
        row = wanted(found.entity, at if is_on else None, entry, now)
        if row != found.entity:
            await self._rows.change(found, row, CHANGE, now)

    def _looks_of(self, whose: Scope) -> dict[str, list[datetime]]:
        """Return when looks at their goals began, none of before a person changed the goal; those
        at goals that have ended are forgotten."""
        known, news = self._known[whose], self._news[whose]
        found = {id_: at for id_, at in self._looks[whose].items() if id_ in known}
        self._looks[whose] = found
        return {
            id_: [one for one in at if id_ not in news or one > news[id_]]
            for id_, at in found.items()
        }

    def _made(self, whose: Scope, at: datetime, now: datetime) -> TimetableRow:
        return TimetableRow(
            id=row_id(whose),
            owner=whose.owner,
            agent=whose.agent,
            name=KIND,
            work=MindWork(),
            schedule=OnceSchedule(at=at),
            zone=self._pause.zone_of(whose.owner),
            has_owners_zone=True,
            made_by="system",
            made_at=now,
            scheduled_at=now,
        )


def row_id(whose: Scope) -> str:
    """Return the id of the row by which a mind looks at goals."""
    return token_of("row", KIND, whose.agent, whose.owner)


def wanted(
    row: TimetableRow, at: datetime | None, last: SlotEntry | None, now: datetime
) -> TimetableRow:
    """Return a row as it is to be.

    Args:
        at: when the next look is to be; None: there is none.
        last: the newest entry of its ledger.
    """
    if at is None:
        return replace(row, is_enabled=False)
    if isinstance(row.schedule, OnceSchedule) and row.is_enabled:
        through = None if last is None else last.ledger.through
        is_open = through is None or through < row.schedule.at
        if is_open and row.schedule.at <= now and at <= now:
            return row  # it's due already
        if row.schedule.at == at:
            return row
    at = max(at, now)
    return replace(row, schedule=OnceSchedule(at=at), is_enabled=True, scheduled_at=now)
