"""/api/preferences: how a person likes things (SPEC G-3, LOOPS L-15).

What a person says here is their own word: it's believed at once, and replaces what stood there.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Final

import msgspec
from fastapi import Depends, Query, Response
from msgspec.structs import replace

from vigil.board.bounds import preferences_of
from vigil.board.kept import PREFERENCES, Revision
from vigil.board.preferences import learn
from vigil.contracts import Instant
from vigil.contracts.board import BoardPreference
from vigil.contracts.board.preference import Lesson, LessonKind, PreferenceCategory
from vigil.preferences import confidence
from vigil.preferences.check import id_of
from vigil.preferences.confidence import Level
from vigil.subjects import PartText, Scope

from .. import preconditions
from ..callers import Caller, Shared, User, body_of
from ..callers import id_of as path_id
from ..http.json import Json
from ..http.wire import Answer, RequestBody
from ..preconditions import Expected
from ..state.edge import Edge
from .desk import KeptDesk, RevisionView, change_by, owner_for

DESK: Final = KeptDesk(PREFERENCES, lambda config: preferences_of(config.preferences.period))
Id = Annotated[str, Depends(path_id("a preference"))]


class PreferenceBody(
    RequestBody, frozen=True, kw_only=True, rename={"agent_id": "agentId", "user_id": "userId"}
):
    """How you like something, or don't."""

    category: PreferenceCategory
    key: str
    """What it is about: lower-case letters, digits, `_`, `-` and `.`, at most 64."""
    value: Any
    """JSON, in at most 1,000 bytes."""
    is_negative: bool = False
    """The value is what you don't want."""
    learned_from: str = ""
    """Where that comes from, in your words."""
    user_id: PartText | None = None
    """Yourself."""
    agent_id: PartText = "vigil"
    why: str = ""


class PreferenceChange(RequestBody, frozen=True, kw_only=True):
    """What is to be changed; another value is said by `POST`."""

    is_confirmed: bool = False
    """It is so: the agent is surer of it."""
    category: PreferenceCategory | None = None
    why: str = ""


class PreferenceView(Answer, frozen=True, kw_only=True):
    """A preference, as sure as the agent is of it now."""

    id: str
    owner: str
    agent_id: str
    category: PreferenceCategory
    key: str
    value: Any
    is_negative: bool
    confidence: float
    level: Level
    """From .7 on it's used without a word; below .5 the agent asks first."""
    learned_from: tuple[Lesson, ...]
    last_confirmed_at: Instant
    created_at: Instant
    is_removed: bool
    revision: int


class PreferenceRevision(RevisionView, frozen=True, kw_only=True):
    """One state that a preference was in, and who made it so."""

    value: Any
    is_negative: bool
    confidence: float
    how: LessonKind | None


class PreferenceDetail(PreferenceView, frozen=True, kw_only=True):
    """A preference, and how it came to be as it is."""

    history: tuple[PreferenceRevision, ...]
    """The oldest first; of more than 64 the newest."""


class PreferenceListing(Answer, frozen=True, kw_only=True):
    """Preferences, the surer first."""

    preferences: tuple[PreferenceView, ...]


def _facts(found: Revision[BoardPreference], now: datetime, period: timedelta) -> dict[str, Any]:
    one = found.entity
    sure = confidence.confidence_at(one, now, period)
    same = {
        name: getattr(one, name)
        for name in BoardPreference.__struct_fields__
        if name not in ("agent", "confidence")
    }
    level = confidence.level_of(sure)
    return {
        **same,
        "agent_id": one.agent,
        "confidence": sure,
        "level": level,
        "revision": found.number,
    }


# ---------------------------------------------------------------- endpoints


async def list_preferences(
    edge: Shared,
    caller: Caller,
    category: Annotated[PreferenceCategory | None, Query(description="Only those")] = None,
    user: User = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 200,
) -> Response:
    """List preferences, the surer first; not what was removed or is forgotten."""
    now, period = edge.clock.now(), _period(edge)
    found = [
        PreferenceView(**_facts(one, now, period))
        for one in await DESK.all(edge, caller, user)
        if confidence.is_held(one.entity, now, period) and category in (None, one.entity.category)
    ]
    found.sort(key=lambda one: (-one.confidence, one.key, one.id))
    return Json(PreferenceListing(preferences=tuple(found[:limit])))


async def get_preference(edge: Shared, caller: Caller, id_: Id) -> Response:
    """Show a preference with its history; its ETag is its revision."""
    return await _shown(edge, await DESK.find(edge, caller.reach, id_))


async def make_preference(
    edge: Shared,
    caller: Caller,
    wanted: Annotated[PreferenceBody, Depends(body_of(PreferenceBody))],
) -> Response:
    """Say how you like something: 201, or 200 if the key was known; 422 beyond 500."""
    owner = owner_for(edge, caller, wanted.agent_id, wanted.user_id)
    now = edge.clock.now()
    lesson, change = _lesson(wanted, owner, now), change_by(caller, wanted.why)
    made = await learn(edge.bus, lesson, change, now, _period(edge))
    DESK.tell("learned", made, caller)
    return await _shown(edge, made, 201 if len(made.entity.learned_from) == 1 else 200)


async def change_preference(
    edge: Shared,
    caller: Caller,
    id_: Id,
    wanted: Annotated[PreferenceChange, Depends(body_of(PreferenceChange))],
    expected: Expected,
) -> Response:
    """Confirm a preference, or put it elsewhere; 412 if it was changed since it was read."""
    found = await DESK.changeable(edge, caller, id_, expected)
    one = found.entity
    DESK.check_leave(caller, one, is_end=False)
    if wanted.category is not None:
        one = replace(one, category=wanted.category)
    if wanted.is_confirmed:
        now = edge.clock.now()
        how: LessonKind = "corrected" if one.is_negative else "said"
        lesson = replace(one, learned_from=(Lesson(how=how, at=now),))
        one = confidence.taught(one, lesson, _period(edge))
    return await _shown(edge, await DESK.store(edge, caller, found, one, wanted.why))


async def remove_preference(edge: Shared, caller: Caller, id_: Id, expected: Expected) -> Response:
    """Remove a preference; the agent may learn it anew, and its history stays."""
    found = await DESK.changeable(edge, caller, id_, expected)
    one = replace(found.entity, is_removed=True)
    return await _shown(edge, await DESK.store(edge, caller, found, one, "removed"))


# ---------------------------------------------------------------- inside


def _period(edge: Edge) -> timedelta:
    return edge.context.settings.config.preferences.period


def _lesson(wanted: PreferenceBody, owner: str, now: datetime) -> BoardPreference:
    how: LessonKind = "corrected" if wanted.is_negative else "said"
    return BoardPreference(
        id=id_of(Scope(wanted.agent_id, owner), wanted.key),
        owner=owner,
        agent=wanted.agent_id,
        category=wanted.category,
        key=wanted.key,
        value=wanted.value,
        confidence=0.0,
        learned_from=(Lesson(how=how, at=now, text=wanted.learned_from),),
        last_confirmed_at=now,
        created_at=now,
    )


async def _shown(edge: Edge, found: Revision[BoardPreference], status: int = 200) -> Response:
    history = tuple(
        PreferenceRevision(
            value=one.value,
            is_negative=one.is_negative,
            confidence=one.confidence,
            how=one.learned_from[-1].how if one.learned_from else None,
            **msgspec.structs.asdict(of),
        )
        for one, of in await DESK.history(edge, found)
    )
    answer = PreferenceDetail(**_facts(found, edge.clock.now(), _period(edge)), history=history)
    return preconditions.tagged(Json(answer, status), found.number)
