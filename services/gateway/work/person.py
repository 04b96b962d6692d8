"""/api/person: what holds for a person, and what they set of it without a restart (LOOPS L-11)."""

from __future__ import annotations

from typing import Annotated, Any

import structlog
from fastapi import Depends, Response
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from vigil.board.kept import ROWS, KeptBoard
from vigil.contracts import Instant
from vigil.settings import own
from vigil.settings.own import StoredSettings
from vigil.subjects import Scope
from vigil.timetable.edit import words_of_move

from .. import preconditions
from ..callers import Caller, Shared, body_of
from ..http.json import Json
from ..http.problem import erasing
from ..http.wire import Answer, RequestBody
from ..preconditions import Expected
from ..state.edge import Edge

log = structlog.get_logger("vigil.gateway")


class PersonChange(RequestBody, frozen=True, kw_only=True):
    """What is to be changed; the rest stays as it is. null: as configured again."""

    timezone: str | UnsetType | None = UNSET
    """IANA name."""
    language: str | UnsetType | None = UNSET
    """Tag of the language to write in, as `de-AT`."""
    quiet_hours: str | UnsetType | None = UNSET
    """`22:00-07:00`, local time; empty: none."""
    channel: str | UnsetType | None = UNSET
    """Where goes what agents say unasked: `socket`, or a name in `[channels]`; empty: where you
    wrote last."""
    digest_at: str | UnsetType | None = UNSET
    """Local time at which you are told together what could wait: `08:00`."""
    pause: str | UnsetType | None = UNSET
    """`on`, or an instant as `2026-12-01T08:00` (local time): until then agents say and begin
    nothing unasked for you. Empty: none."""


class PersonView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """What holds for you."""

    user: str
    timezone: str
    language: str
    quiet_hours: str
    channel: str
    digest_at: str
    pause: str
    home_thread: str
    own: tuple[str, ...]
    """What you set; the rest is configured."""
    changed_at: Instant | None
    changed_by: str
    revision: int
    """0: you never set anything."""
    told: str = ""
    """What becomes of your rows of the timetable with this change of your zone, if anything."""


async def get_person(edge: Shared, caller: Caller) -> Response:
    """Tell what holds for you; the ETag is its revision."""
    return _shown(edge, caller.user, await own.find(edge.bus, caller.user))


async def change_person(
    edge: Shared,
    caller: Caller,
    wanted: Annotated[PersonChange, Depends(body_of(PersonChange))],
    expected: Expected,
) -> Response:
    """Set what holds for you from each session's next turn on; 412 if it was changed since it was
    read."""
    if edge.switches.is_erasing(caller.user):
        raise erasing()
    named: dict[str, Any] = {n: one for n, one in asdict(wanted).items() if one is not UNSET}
    config = edge.context.settings.config
    configured, now = config.person_of(caller.user), edge.clock.now()

    async def set_named() -> tuple[StoredSettings, StoredSettings]:
        """Return what was set, and what is."""
        found = await own.find(edge.bus, caller.user)
        preconditions.check(expected, found.revision)
        if own.is_so(found, named):
            return found, found
        changed = own.changed(found, named, now, caller.user, configured, config.channels)
        put = await own.put(edge.bus, caller.user, changed, expect=found.revision)
        log.info("person changed", action="gateway.person", by=caller.user, names=sorted(named))
        return found, put

    found, changed = await preconditions.changed(expected, set_named)
    if changed is found:
        return _shown(edge, caller.user, found)
    before, after = (own.over(configured, one).timezone for one in (found.own, changed.own))
    rows = () if before == after else await KeptBoard(edge.bus, ROWS).all(Scope("*", caller.user))
    told = words_of_move((one.entity for one in rows), before, after)
    return _shown(edge, caller.user, changed, told)


def _shown(edge: Edge, user: str, found: StoredSettings, told: str = "") -> Response:
    person = own.over(edge.context.settings.config.person_of(user), found.own)
    view = PersonView(
        **{name: getattr(person, name) for name in (*own.NAMES, "home_thread")},
        user=user,
        own=tuple(own.values(found.own)),
        changed_at=None if found.own is None else found.own.at,
        changed_by="" if found.own is None else found.own.by,
        revision=found.revision,
        told=told,
    )
    return preconditions.tagged(Json(view), found.revision)
