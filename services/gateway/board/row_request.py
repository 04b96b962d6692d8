"""What a caller may do with a row of the timetable (LOOPS L-1, SPEC J-2).

The board is the truth of rows; the scheduler reads what is written here. Only the order to run one
by hand goes into the ledger from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import structlog
from fastapi import Depends, Response
from msgspec.structs import replace

from vigil.board.kept import FACTS, KeptBoard, Revision
from vigil.board.kinds.row import KIND, RowState
from vigil.board.outside import MakeOperation
from vigil.board.rows import PersonsRows
from vigil.contracts import Change, SlotEntry, TimetableRow
from vigil.contracts.board import AfterSchedule, SourceFacts
from vigil.contracts.board.row import is_watch_only
from vigil.facts.shown import shapes_of
from vigil.subjects import Scope
from vigil.timetable.ledger import begun, is_busy

from .. import preconditions
from ..callers import Caller, Shared, id_of
from ..http.json import Json
from ..http.problem import Problem, erasing
from ..timetable.slots import view_of_slot
from .request import KindRequest

log = structlog.get_logger("vigil.gateway")


class RowRequest(KindRequest[TimetableRow]):
    """Answers one request about rows."""

    of_admins = "pause and remove it"

    async def run(self, *, id_: str) -> Response:
        """Order a run beside the schedule."""
        entry, row = await preconditions.changed(None, lambda: self._ordered(id_))
        log.info("row run by hand", action="gateway.cron", row=id_, by=self._caller.user)
        return Json(view_of_slot(entry, row), 202)

    async def _ordered(self, id_: str) -> tuple[SlotEntry, TimetableRow]:
        """Return what was ordered. Raises: WrongLastSequence: a slot was decided this moment."""
        found = await self._find(id_)
        row, ledger = found.entity, self._edge.slots
        if self._edge.switches.is_erasing(row.owner):
            raise erasing()
        super()._check_changeable(row)
        self._check_leave(row, None)
        if is_watch_only(row.work):
            raise Problem(409, "it only looks, when it is due: nothing is run for it")
        whose = Scope(row.agent, row.owner)
        last = await ledger.last(whose, row.id)
        if is_busy(row, last.ledger):
            raise Problem(409, "a run of it is still going on")
        entry = begun(row, self._occasion.now)
        await ledger.append(whose, last, entry)
        return entry, row

    # ------------------------------------------------------------ what is otherwise

    async def _read_for(self, wanted: Any, whose: Scope, user: str) -> None:
        others: tuple[TimetableRow, ...] = ()
        if wanted.on_fact:
            there = [one.entity for one in await self._board.all(whose)]
            others = tuple([one for one in there if not one.is_removed])
        zone = self._edge.zone_of(user)
        self._occasion = replace(self._occasion, zone=zone, others=others)

    async def _read_beside(self, shown: Sequence[Revision[TimetableRow]]) -> None:
        followed = await self._followed([one.entity for one in shown])
        beside: dict[str, RowState] = {}
        for row in (one.entity for one in shown):
            if row.id not in beside:
                placed = await self._edge.slots.last(Scope(row.agent, row.owner), row.id)
                beside[row.id] = RowState(
                    ledger=placed.ledger,
                    facts=await self._facts(row),
                    zone=self._edge.zone_of(row.owner),
                    followed=followed,
                )
        self._occasion = replace(self._occasion, beside=beside)

    async def _followed(self, rows: Sequence[TimetableRow]) -> tuple[TimetableRow, ...]:
        """Return the rows that some follow, as far as they are there."""
        wanted = {
            row.schedule.row: Scope(row.agent, row.owner)
            for row in rows
            if isinstance(row.schedule, AfterSchedule) and not row.schedule.hook
        }
        found = [await self._board.find([whose], id_) for id_, whose in wanted.items()]
        return tuple([one.entity for one in found if one is not None])

    async def _facts(self, row: TimetableRow) -> SourceFacts | None:
        if not shapes_of(row):
            return None
        board = KeptBoard(self._edge.bus, FACTS)
        found = await board.find([Scope(row.agent, row.owner)], row.id)
        return None if found is None else found.entity

    async def _add(
        self, makes: MakeOperation[TimetableRow], entity: TimetableRow, change: Change
    ) -> Revision[TimetableRow]:
        return await self._rows().make(entity, change, self._occasion.now)

    async def _put(
        self, found: Revision[TimetableRow], entity: TimetableRow, change: Change
    ) -> Revision[TimetableRow]:
        return await self._rows().change(found, entity, change, self._occasion.now)

    def _check_changeable(self, entity: TimetableRow) -> None:
        super()._check_changeable(entity)
        if entity.is_of_system:
            raise Problem(409, "it follows from the configuration: change that")

    def _rows(self) -> PersonsRows:
        settings = self._edge.context.settings
        return PersonsRows(self._edge.bus, settings.config, settings.skills)


async def run_row(
    edge: Shared, caller: Caller, id_: Annotated[str, Depends(id_of(KIND.called))]
) -> Response:
    """Run a row at once; none of its slots is used up. 409 while a run goes on, or 10 do."""
    return await RowRequest(KIND, edge, caller).run(id_=id_)
