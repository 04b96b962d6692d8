"""/api/autonomy: agents that keep up by themselves: whether, how often, and what came of it (C-7).

What is configured under `[cortex]` holds until an admin sets it otherwise here; that needs no
restart. A cycle itself is the system's: it can be read, and run by hand as any row.
"""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

import structlog
from fastapi import Depends, Response
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from vigil.board.kept import ROWS, KeptBoard, Revision
from vigil.contracts import Instant, TimetableRow
from vigil.contracts.board import AutonomyWork, CycleLedger
from vigil.settings import switches
from vigil.settings.switches import CortexChange
from vigil.subjects import Scope
from vigil.timetable.schedule import upcoming
from vigil.watching.interests import ROLE, interests_of

from .. import preconditions
from ..access import listed
from ..callers import Admin, Caller, Shared, User, body_of
from ..http.json import Json
from ..http.wire import Answer, RequestBody
from ..preconditions import Expected
from ..state.edge import Edge

log = structlog.get_logger("vigil.gateway")


class RecheckView(Answer, frozen=True, kw_only=True):
    """What is to be looked at again."""

    what: str
    at: Instant
    is_tainted: bool


class LookView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """What it looks after, and when by the clock."""

    what: str
    every_s: int
    """0: only when a cycle begins for another reason."""
    hours: str
    """Local time; empty: always."""
    looked_at: Instant | None
    """When the newest cycle that was told to look there was due."""


class CycleView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """How an agent keeps up for a person."""

    row: str
    owner: str
    agent_id: str
    is_on: bool
    next_at: Instant | None
    """When it's looked next whether there is anything new."""
    running: str
    """The session of the cycle that goes on; empty: none does."""
    ended_at: Instant | None
    failures: int
    """Of the newest cycles, one after the other."""
    checked: tuple[str, ...]
    found: tuple[str, ...]
    deferred: tuple[str, ...]
    """As the last report has it."""
    is_tainted: bool
    """Whether content from outside had a part in that report: read it as what others wrote."""
    rechecks: tuple[RecheckView, ...]
    looks: tuple[LookView, ...]


class AutonomyView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """What holds, and the cycles that one may see."""

    settings: dict[str, Any]
    changed: tuple[str, ...]
    """Settings that hold otherwise than they are configured."""
    changed_by: str
    cycles: tuple[CycleView, ...]
    revision: int


class AutonomyChange(RequestBody, frozen=True, kw_only=True):
    """What is to hold from now on; the rest stays as it is. null: as configured again."""

    autonomy_enabled: bool | UnsetType | None = UNSET
    autonomy_interval_secs: int | UnsetType | None = UNSET
    autonomy_look_secs: int | UnsetType | None = UNSET
    autonomy_role_secs: int | UnsetType | None = UNSET
    autonomy_max_turns: int | UnsetType | None = UNSET
    autonomy_max_workers: int | UnsetType | None = UNSET
    autonomy_tasks_require_approval: bool | UnsetType | None = UNSET
    autonomy_findings_shown: int | UnsetType | None = UNSET
    autonomy_timeout_s: int | UnsetType | None = UNSET
    bulletin_interval_secs: int | UnsetType | None = UNSET
    bulletin_synthesis: bool | UnsetType | None = UNSET
    bulletin_max_words: int | UnsetType | None = UNSET
    summary_interval_secs: int | UnsetType | None = UNSET
    summary_rewriting: bool | UnsetType | None = UNSET


async def get_autonomy(edge: Shared, caller: Caller, user: User = None) -> Response:
    """Tell how agents keep up by themselves; the ETag is the revision of what was set."""
    board = KeptBoard(edge.bus, ROWS)
    there = [one for whose in listed(caller, user) for one in await board.all(whose)]
    rows = [one for one in there if isinstance(one.entity.work, AutonomyWork)]
    cycles = [await _cycle(edge, one) for one in rows if not one.entity.is_removed]
    return await _shown(edge, tuple(sorted(cycles, key=lambda one: (one.owner, one.agent_id))))


async def change_autonomy(
    edge: Shared,
    caller: Admin,
    wanted: Annotated[AutonomyChange, Depends(body_of(AutonomyChange))],
    expected: Expected,
) -> Response:
    """Set how agents keep up, for all, without a restart; 412 if it was changed since it was
    read."""
    named = {name: one for name, one in asdict(wanted).items() if one is not UNSET}

    async def set_named() -> None:
        found, revision = await switches.find_cortex(edge.bus)
        preconditions.check(expected, revision)
        values = {name: one for name, one in (found.values | named).items() if one is not None}
        change = CortexChange(values=values, at=edge.clock.now(), by=caller.user)
        change.over(edge.context.settings.config.cortex)
        await switches.change_cortex(edge.bus, change, expect=revision)

    await preconditions.changed(expected, set_named)
    log.info("autonomy changed", action="gateway.autonomy", by=caller.user, names=sorted(named))
    return await _shown(edge, ())


async def _shown(edge: Edge, cycles: tuple[CycleView, ...]) -> Response:
    found, revision = await switches.find_cortex(edge.bus)
    holds = asdict(found.over(edge.context.settings.config.cortex))
    settings = {name: holds[name] for name in AutonomyChange.__struct_fields__}
    view = AutonomyView(
        settings=settings,
        changed=tuple(sorted(found.values)),
        changed_by=found.by,
        cycles=cycles,
        revision=revision,
    )
    return preconditions.tagged(Json(view), revision)


async def _cycle(edge: Edge, found: Revision[TimetableRow]) -> CycleView:
    row = found.entity
    ledger = (await edge.slots.last(Scope(row.agent, row.owner), row.id)).ledger
    cycles = ledger.cycles or CycleLedger()
    following = list(islice(upcoming(row, edge.clock.now()), 1)) if row.is_enabled else []
    report = cycles.report
    return CycleView(
        row=row.id,
        owner=row.owner,
        agent_id=row.agent,
        is_on=row.is_enabled,
        next_at=following[0] if following else None,
        running=ledger.running[-1].session if ledger.running else "",
        ended_at=cycles.ended_at,
        failures=ledger.failures,
        checked=report.checked if report else (),
        found=report.found if report else (),
        deferred=report.deferred if report else (),
        is_tainted=report is not None and report.is_tainted,
        rechecks=tuple(
            RecheckView(what=one.what, at=one.at, is_tainted=one.is_tainted)
            for one in cycles.rechecks
        ),
        looks=await _looks(edge, row.agent, cycles),
    )


async def _looks(edge: Edge, agent: str, cycles: CycleLedger) -> tuple[LookView, ...]:
    config = edge.context.settings.config
    cortex = (await switches.find_cortex(edge.bus))[0].over(config.cortex)
    interests = interests_of(
        config.agent_of(agent).looks,
        every_s=cortex.autonomy_look_secs,
        has_role=ROLE in cycles.looked,
        role_every_s=cortex.autonomy_role_secs,
    )
    return tuple(
        LookView(
            what=interest.what,
            every_s=interest.every_s,
            hours=interest.hours,
            looked_at=cycles.looked.get(interest.what),
        )
        for interest in interests
    )
