"""/api/cron: what recurs (LOOPS L-1, SPEC J-2).

The board is the truth of rows, and changes by compare-and-set; the scheduler reads what is written
here. Only the order to run one by hand goes into the ledger from here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

import structlog
from fastapi import Depends, Query, Response
from msgspec.structs import replace

from vigil.board.kept import ROWS, KeptBoard, Revision
from vigil.board.rows import PersonsRows
from vigil.contracts import Change, TimetableRow
from vigil.contracts.board.row import OTHER_NAMES, only_looks
from vigil.errors import WrongLastSequence
from vigil.facts.followed import followed_by
from vigil.facts.hooked import hooks_for
from vigil.settings.tokens import Principal
from vigil.subjects import Scope
from vigil.tasks.check import check_text
from vigil.teams import may_act
from vigil.timetable.ledger import begun, is_busy

from .. import preconditions
from ..access import listed
from ..board.request import owner_for
from ..callers import Caller, Shared, User, body_of, id_of
from ..http.json import Json
from ..http.problem import Problem, erasing
from ..preconditions import Expected
from ..state.edge import Edge
from .rows import RowBody, RowChange, RowListing, changed, detail_of, row_of, view_of
from .slots import view_of_slot

log = structlog.get_logger("vigil.gateway")

WHY_LENGTH_MAX: Final = 500
Id = Annotated[str, Depends(id_of("a row of the timetable"))]


async def list_rows(
    edge: Shared,
    caller: Caller,
    user: User = None,
    all_: Annotated[
        bool, Query(alias="all", description="Those that the system keeps up, too")
    ] = False,
) -> Response:
    """List the rows of the timetable that aren't removed."""
    board = KeptBoard(edge.bus, ROWS)
    there = [one for whose in listed(caller, user) for one in await board.all(whose)]
    there = [one for one in there if all_ or not one.entity.is_of_system]
    rows = [await view_of(edge, one) for one in there if not one.entity.is_removed]
    rows.sort(key=lambda one: (one.owner, one.name))
    return Json(RowListing(rows=tuple(rows)))


async def get_row(edge: Shared, caller: Caller, id_: Id) -> Response:
    """Show a row with its history; its ETag is its revision."""
    return await _shown(edge, await find(edge, caller.reach, id_))


async def make_row(
    edge: Shared,
    caller: Caller,
    wanted: Annotated[RowBody, Depends(body_of(RowBody, OTHER_NAMES | {"id": "name"}))],
) -> Response:
    """Make a row; 422 beyond 100."""
    owner = owner_for(edge, caller, wanted.agent_id, wanted.user_id)
    now, id_ = edge.clock.now(), edge.context.new_id().replace("-", "")
    zone = wanted.zone or edge.zone_of(caller.user)
    followed = await _followed(edge, wanted.on_fact, Scope(wanted.agent_id, owner))
    row = row_of(wanted, owner, id_, zone, now, followed)
    change = Change(by=caller.user, why=_why(wanted.why))
    made = await _rows(edge).make(row, change, now)
    log.info("row made", action="gateway.cron", row=row.id, by=caller.user)
    return await _shown(edge, made, 201)


async def change_row(
    edge: Shared,
    caller: Caller,
    id_: Id,
    wanted: Annotated[RowChange, Depends(body_of(RowChange, OTHER_NAMES))],
    expected: Expected,
) -> Response:
    """Change, pause or resume a row; 412 if it was changed since it was read."""
    found = await _changeable(edge, caller, id_, expected)
    is_pause = wanted == RowChange(is_enabled=False, why=wanted.why)
    if not is_pause:
        _check_leave(caller, found.entity)
    own_zone = edge.zone_of(found.entity.owner)
    whose = Scope(found.entity.agent, found.entity.owner)
    followed = await _followed(edge, wanted.on_fact, whose)
    row = changed(found.entity, wanted, edge.clock.now(), own_zone, followed)
    return await _stored(edge, caller, found, row, wanted.why)


async def remove_row(edge: Shared, caller: Caller, id_: Id, expected: Expected) -> Response:
    """Remove a row; what runs of it goes on to its end."""
    found = await _changeable(edge, caller, id_, expected)
    return await _stored(edge, caller, found, replace(found.entity, is_removed=True), "removed")


async def run_row(edge: Shared, caller: Caller, id_: Id) -> Response:
    """Run a row at once; none of its slots is used up. 409 while a run goes on, or 10 do."""
    found = await _changeable(edge, caller, id_, None, is_run=True)
    row, ledger = found.entity, edge.slots
    _check_leave(caller, row)
    if only_looks(row.work):
        raise Problem(409, "it only looks, when it is due: nothing is run for it")
    whose = Scope(row.agent, row.owner)
    last = await ledger.last(whose, row.id)
    if is_busy(row, last.ledger):
        raise Problem(409, "a run of it is still going on")
    entry = begun(row, edge.clock.now())
    try:
        await ledger.append(whose, last, entry)
    except WrongLastSequence:
        raise Problem(409, "a slot of it was decided at this very moment; try again") from None
    log.info("row run by hand", action="gateway.cron", row=id_, by=caller.user)
    return Json(view_of_slot(entry), 202)


# ---------------------------------------------------------------- inside


def _rows(edge: Edge) -> PersonsRows:
    settings = edge.context.settings
    return PersonsRows(edge.bus, settings.config, settings.skills)


async def _followed(edge: Edge, on_fact: str | None, whose: Scope) -> dict[str, str]:
    """Return what is followed that is named so. Raises: InvalidInput."""
    if not on_fact:
        return {}
    rows = [one.entity for one in await KeptBoard(edge.bus, ROWS).all(whose)]
    there = [one for one in rows if not one.is_removed]
    return followed_by(on_fact, there, hooks_for(edge.context.settings.config.hooks, whose))


def _check_leave(caller: Principal, row: TimetableRow) -> None:
    """Raises: Problem, 403: only the owner says what is done, and when."""
    if not may_act(caller.user, row.owner, row.agent, caller.teams):
        raise Problem(403, "only its owner may do that; an admin may pause and remove it")


def _why(text: str) -> str:
    return check_text("why", text, WHY_LENGTH_MAX)


async def find(edge: Edge, whose: Iterable[Scope], id_: str) -> Revision[TimetableRow]:
    """Return a row of the caller's. Raises: Problem, 404: they have no such."""
    found = await KeptBoard(edge.bus, ROWS).find(whose, id_)
    if found is None:
        raise Problem(404, "there is no such row of the timetable")
    return found


async def _changeable(
    edge: Edge, caller: Principal, id_: str, expected: int | None, *, is_run: bool = False
) -> Revision[TimetableRow]:
    """Return a row that may be changed, or run by hand. Raises: Problem."""
    found = await find(edge, caller.reach, id_)
    if edge.switches.is_erasing(found.entity.owner):
        raise erasing()
    preconditions.check(expected, found.number)
    if found.entity.is_removed:
        raise Problem(409, "it was removed")
    if found.entity.is_of_system and not is_run:
        raise Problem(409, "it follows from the configuration: change that")
    return found


async def _stored(
    edge: Edge, caller: Principal, found: Revision[TimetableRow], row: TimetableRow, why: str
) -> Response:
    now, change = edge.clock.now(), Change(by=caller.user, why=_why(why))
    try:
        made = await _rows(edge).change(found, row, change, now)
    except WrongLastSequence:
        raise preconditions.changed() from None
    if made is found:
        return await _shown(edge, found)
    log.info("row changed", action="gateway.cron", row=row.id, by=caller.user)
    return await _shown(edge, made)


async def _shown(edge: Edge, found: Revision[TimetableRow], status: int = 200) -> Response:
    return preconditions.tagged(Json(await detail_of(edge, found), status), found.number)
