"""GET /api/why/{id}: why something was said, or was not (SPEC D-3)."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

import structlog
from fastapi import Path, Query, Response
from msgspec.structs import replace

from vigil.errors import InvalidInput, Unavailable
from vigil.settings.tokens import Principal

from ..access import readable_session
from ..callers import Caller, Shared
from ..gone import check_not_deleted
from ..http.decide import check_length
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import KEY_SCHEMA
from ..state.edge import Edge
from . import search
from .answer import WhyAnswer, answer_of
from .reader import Reader
from .sought import SearchScope
from .text import Voice

log = structlog.get_logger("vigil.gateway")

ID_LENGTH_MAX: Final = 256
STORY_TIMEOUT_S: Final = 20.0
"""For search and reads, waiting for other stories included."""


async def get_why(
    edge: Shared,
    caller: Caller,
    id_: Annotated[
        str,
        Path(
            alias="id",
            description="Of a message, event, timer, turn, dead letter, signal, task, grant, ...",
            json_schema_extra={
                "minLength": 1,
                "maxLength": ID_LENGTH_MAX,
                "pattern": r"^[^\u0000-\u001f\u007f-\u009f]+$",
            },
        ),
    ],
    session: Annotated[
        str | None,
        Query(description="userId:agentId:threadId, if it is known", json_schema_extra=KEY_SCHEMA),
    ] = None,
) -> Response:
    """Tell why something was said, or was not: the whole chain of causes, from the log."""
    return Json(await explain(edge, caller, id_, session))


async def explain(edge: Edge, caller: Principal, id_: str, session: str | None) -> WhyAnswer:
    """Tell the story of what an id names.

    Raises:
        InvalidInput: it can't be an id.
        Problem: 404, nothing of the caller's is known by it; 422, several sessions have a record
            of that number; 410, its conversation was deleted.
        Unavailable: the broker is away, or it took longer than `STORY_TIMEOUT_S`.
    """
    check_length("id", id_, ID_LENGTH_MAX)
    if not id_.isprintable():
        raise InvalidInput("id", "must not contain control characters")
    scope = SearchScope(
        caller.reach,
        None if session is None else readable_session(session, caller),
        caller.nearest if session is None else (),
    )
    try:
        async with asyncio.timeout(STORY_TIMEOUT_S), edge.stories:
            place = await search.find(edge.bus, scope, id_)
            story = await Reader(edge.bus, place.key).answer(place.asking)
    except Problem:
        if scope.session is not None:
            await check_not_deleted(edge, scope.session)
        raise
    except TimeoutError as error:
        raise Unavailable(f"{id_}: the story took too long to read") from error
    log.debug("told", action="gateway.why", session=str(place.key), records=len(story.facts))
    voice = Voice(place.key.user, caller.user)
    kind = place.kind or story.kind
    session_key = str(place.key) if place.key.thread else ""
    answer = answer_of(story, voice, id_=place.id, kind=kind, session_key=session_key)
    return replace(answer, others=tuple(map(str, place.others)))
