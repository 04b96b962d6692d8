"""/api/slots: what became of each instant at which a row of the timetable was due (SPEC J-4)."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Annotated, Final

from fastapi import Query, Response

from vigil.board.kept import ROWS, KeptBoard
from vigil.bus.bus import Bus
from vigil.contracts import (
    Instant,
    SlotEntry,
    TimetableRow,
)
from vigil.contracts.board import (
    Delivery,
    FactFill,
    Ledger,
    SlotState,
)
from vigil.contracts.board.vocabulary import Trigger
from vigil.subjects import Scope
from vigil.timetable.findings import Finding, What, findings, untold
from vigil.timetable.ledger import kept, trigger_of
from vigil.timetable.log import SlotLog

from ..access import listed
from ..callers import SEQ_MAX, Caller, Shared, User
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import Answer
from .arrival import NOT_ARRIVED, Arrival, arrival_of


class SlotView(Answer, frozen=True, kw_only=True):
    """What became of an instant at which a row was due, or of several."""

    row: str
    name: str
    """What the row is called, or was before it was removed."""
    owner: str
    agent_id: str
    due_at: Instant
    """Of several the last."""
    first_at: Instant | None
    """Of several the first."""
    count: int
    state: SlotState
    reason: str
    decided_at: Instant
    is_by_hand: bool
    trigger: Trigger
    """What had the run begin: a person, its time, the end of another row's run, or a goal."""
    session: str
    delivery: Delivery
    arrival: Arrival
    """What became of what was told: it is `waiting` there, or in the next `digest`, `said`, …"""
    tokens: int
    """Of an end: what the run's own calls of models took, without what it started."""
    micro_usd: int
    """What that cost, in millionths of a US dollar, as far as there are prices."""
    facts: dict[str, str]
    """Of an end: the facts that it told, by name."""
    facts_left_out: dict[str, str]
    """Those that its row names and of which nothing is known by it, and why."""


class SlotListing(Answer, frozen=True, kw_only=True):
    """Entries of the ledger, the newest first. `next_before` goes on; absent: that was all."""

    slots: tuple[SlotView, ...]
    next_before: int | None = None


class FindingView(Answer, frozen=True, kw_only=True):
    """What is wrong with a row."""

    row: str
    owner: str
    agent_id: str
    name: str
    what: What
    text: str


class FindingListing(Answer, frozen=True, kw_only=True):
    """What is wrong with rows, by name."""

    findings: tuple[FindingView, ...]


ARRIVALS_AT_ONCE: Final = 16
"""Of how many results it's looked at a time what became of them."""
READ_MAX: Final = 20
"""Entries of a ledger that are looked at."""
SEARCHED_MAX: Final = 5_000
"""Entries that are read for one listing: each is an exchange with the broker."""


async def list_findings(edge: Shared, caller: Caller, user: User = None) -> Response:
    """List what is wrong with rows: never run, late, failing, undecided, without an end."""
    board, now = KeptBoard(edge.bus, ROWS), edge.clock.now()
    since = now - timedelta(days=edge.context.settings.config.retention.slots_days)
    found: list[FindingView] = []
    rows = [one.entity for each in listed(caller, user) for one in await board.all(each)]
    for row in rows:
        if row.is_removed or not row.is_enabled:
            continue
        entries = await _newest(edge.slots, row)
        ledger = kept(row, entries[0].ledger if entries else Ledger(), since)
        wrong = findings(row, ledger, entries, now, rows)
        wrong += await _untold(edge.bus, row, entries)
        found += [
            FindingView(
                row=row.id,
                owner=row.owner,
                agent_id=row.agent,
                name=row.name,
                what=what.what,
                text=what.text,
            )
            for what in wrong
        ]
    found.sort(key=lambda one: (one.owner, one.name))
    return Json(FindingListing(findings=tuple(found)))


async def _untold(bus: Bus, row: TimetableRow, entries: list[SlotEntry]) -> list[Finding]:
    """Return whether the newest result of a row reached nobody. Raises: Unavailable."""
    newest = next((entry for entry in entries if entry.told_to), None)
    if newest is None:
        return []
    arrival = await arrival_of(bus, row.owner, newest)
    return [untold(newest, arrival)] if arrival in NOT_ARRIVED else []


async def _newest(log: SlotLog, row: TimetableRow) -> list[SlotEntry]:
    entries: list[SlotEntry] = []
    async for entry in log.newest(Scope(row.agent, row.owner), row.id):
        entries.append(entry)
        if len(entries) >= READ_MAX:
            break
    return entries


async def list_slots(
    edge: Shared,
    caller: Caller,
    row: Annotated[
        str | None, Query(description="Only those of this row", pattern="^[0-9a-f]{32}$")
    ] = None,
    state: Annotated[SlotState | None, Query(description="Only those")] = None,
    user: User = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    before: Annotated[
        int, Query(ge=0, le=SEQ_MAX, description="Continue before this place; 0: the newest")
    ] = 0,
) -> Response:
    """List what became of the instants at which rows were due, the newest first: of 5,000 entries
    at most those of a state."""
    whose, board = listed(caller, user), KeptBoard(edge.bus, ROWS)
    if row is None:
        there = [one for each in whose for one in await board.all(each)]
    else:
        found = await board.find(caller.nearest if user is None else whose, row)
        if found is None:
            raise Problem(404, "there is no such row of the timetable")
        there = [found]
    walks = [
        edge.slots.backwards(Scope(one.entity.agent, one.entity.owner), one.entity.id)
        for one in there
    ]
    entries: list[SlotEntry] = []
    left, last, has_more = SEARCHED_MAX, 0, False
    async for place, entry in _merged(walks):
        if before and place >= before:
            continue
        if len(entries) >= limit or not left:
            has_more = True
            break
        if state is None or entry.state == state:
            entries.append(entry)
        left, last = left - 1, place
    rows = {one.entity.id: one.entity for one in there}
    room = asyncio.Semaphore(ARRIVALS_AT_ONCE)

    async def view(entry: SlotEntry) -> SlotView:
        async with room:
            of = rows[entry.row]
            return view_of_slot(entry, of, await arrival_of(edge.bus, of.owner, entry))

    slots = await asyncio.gather(*(view(entry) for entry in entries))
    return Json(SlotListing(slots=tuple(slots), next_before=last if has_more else None))


async def _merged(
    walks: list[AsyncIterator[tuple[int, SlotEntry]]],
) -> AsyncIterator[tuple[int, SlotEntry]]:
    """Yield the entries of several ledgers with their places, the newest first."""
    heads: list[tuple[int, int, SlotEntry]] = []

    async def push(number: int) -> None:
        if (found := await anext(walks[number], None)) is not None:
            heapq.heappush(heads, (-found[0], number, found[1]))

    for number in range(len(walks)):
        await push(number)
    while heads:
        place, number, entry = heapq.heappop(heads)
        yield -place, entry
        await push(number)


_REST: Final = (
    "name",
    "owner",
    "agent_id",
    "trigger",
    "decided_at",
    "arrival",
    "facts",
    "facts_left_out",
)
"""What isn't a field of an entry."""


def view_of_slot(entry: SlotEntry, row: TimetableRow, arrival: Arrival = "") -> SlotView:
    """Return an entry as it is shown."""
    names = (name for name in SlotView.__struct_fields__ if name not in _REST)
    same = {name: getattr(entry, name) for name in names}
    fill = entry.facts or FactFill(cause="")
    return SlotView(
        **same,
        name=row.name,
        owner=row.owner,
        agent_id=row.agent,
        trigger=trigger_of(entry),
        decided_at=entry.at,
        arrival=arrival,
        facts=fill.values,
        facts_left_out=fill.left_out,
    )
