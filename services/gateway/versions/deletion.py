"""DELETE /api/sessions/{key}: a conversation is deleted by its person (docs/adr/0047).

A mark is set first: from then on nothing of it is shown or taken in, here and everywhere. The
scheduler deletes the records behind it. What was learnt in it is the person's memory, and stays
unless they want that forgotten, too.
"""

from __future__ import annotations

import contextlib
from datetime import datetime
from typing import Annotated, Final

import msgspec
import structlog
from fastapi import Query, Request, Response

from vigil.board.kept import KeptBoard
from vigil.board.kinds.grant import GRANTS
from vigil.bus.bus import BusError
from vigil.circuits.circuits import OUTSIDE, SESSION, reset
from vigil.contracts import Change, ControlPayload, Instant
from vigil.errors import Unavailable, VigilError, WrongLastSequence
from vigil.grants.rule import emptied
from vigil.marks import conversation_label, thread_mark
from vigil.memory.operations.forget import Forget
from vigil.memory.operations.list import ListMemories
from vigil.subjects import SessionKey

from ..callers import Caller, OwnSession, Shared
from ..endpoint import Endpoint
from ..gone import is_there
from ..http.json import Json
from ..http.problem import Problem, erasing, unavailable
from ..http.wire import Answer
from ..sessions import history
from ..sessions.messages import parent_of
from ..state.edge import Edge

log = structlog.get_logger("vigil.gateway")

PAGE: Final = 100
"""Memories that are asked for at once."""


class ThreadDeleted(Answer, frozen=True, kw_only=True):
    """A conversation that is deleted, and what became of what came out of it."""

    session_key: str
    asked_at: Instant
    done_at: Instant | None = None
    """When the last of its records was deleted; absent: that goes on by itself."""
    deleted: dict[str, int] = msgspec.field(default_factory=dict)
    """How many records were deleted, by stream, once that is over."""
    memories_kept: int = 0
    """What agents remember from this conversation."""
    memories_forgotten: int = 0
    timers_ended: int = 0
    """Open follow-ups and reminders of the conversation: they end with it."""
    grants_ended: int = 0
    """Standing grants that held in this conversation alone: they end with it, too."""


async def delete_session(
    request: Request,
    edge: Shared,
    caller: Caller,
    session: OwnSession,
    memories: Annotated[
        bool, Query(description="Forget what was learnt in it, too; otherwise that is kept")
    ] = False,
) -> Response:
    """Delete a conversation: nothing of it is shown from now on, and its records are deleted.

    Harmless to repeat. Its name may be used anew once `done_at` is there.
    """
    if edge.switches.is_erasing(session.user):
        raise erasing()
    known = await thread_mark.find(edge.bus, session)
    has_records = await is_there(edge, session)
    if known is None and not has_records:
        raise Problem(404, "there is no such session")
    learnt = await _learnt(edge, session, must_know=memories)
    if memories and learnt:
        await _forget(edge, session, learnt, caller.user)
    is_new = has_records and (known is None or not known.is_open)
    timers = len((await history.timers(edge.bus, session)).timers) if is_new else 0
    grants = 0
    # Also once it is gone: whoever named it while it went named nothing.
    await conversation_label.forget_conversation(edge.bus, session)
    if is_new:
        # What is running ends as it does when a person stops it, before nobody may say so.
        await edge.intake.control(
            session, ControlPayload(op="stop"), parent=parent_of(request.scope)
        )
        now = edge.clock.now()
        grants = await _end_what_holds(edge, session, caller.user, now)
        known = await thread_mark.begin(edge.bus, session, by=caller.user, now=now)
        edge.switches.learn_thread(known)
    if known is None:
        raise AssertionError("a conversation that isn't there was never deleted")
    answer = ThreadDeleted(
        session_key=str(session),
        asked_at=known.asked_at,
        done_at=known.done_at,
        deleted={} if known.is_open else known.deleted,
        memories_kept=0 if memories else len(learnt),
        memories_forgotten=len(learnt) if memories else 0,
        timers_ended=timers,
        grants_ended=grants,
    )
    return Json(answer, 202 if known.is_open else 200)


async def _learnt(edge: Edge, session: SessionKey, *, must_know: bool) -> list[str]:
    """Return the ids of the memories that came from a conversation.

    Raises:
        Problem: 503, nobody can tell now, and somebody must know.
    """
    found: list[str] = []
    after = ""
    try:
        while True:
            question = ListMemories(thread=session.thread, limit=PAGE, after=after)
            page = await edge.memory.ask(session.scope, question)
            found += [one.id for one in page.memories]
            if page.next_after is None:
                return found
            after = page.next_after
    except VigilError as error:
        if must_know:
            raise unavailable("memory can't be asked now; nothing was deleted") from error
        return found


async def _forget(edge: Edge, session: SessionKey, ids: list[str], user: str) -> None:
    try:
        for start in range(0, len(ids), PAGE):
            question = Forget(ids=tuple(ids[start : start + PAGE]), by=f"user:{user}")
            await edge.memory.ask(session.scope, question)
    except VigilError as error:
        raise unavailable("memory can't be asked now; the conversation wasn't deleted") from error


async def _end_what_holds(edge: Edge, session: SessionKey, user: str, now: datetime) -> int:
    """End what would hold for the next conversation of that name: grants that name it, and its
    circuits; return how many grants stood. One that is made meanwhile the scheduler finds.

    Raises:
        Problem: 503, it can't be done now; the conversation is there.
    """
    board, change = KeptBoard(edge.bus, GRANTS), Change(by=user, why="its conversation was deleted")
    count = 0
    try:
        for found in await board.all(session.scope):
            grant = found.entity
            if grant.session_key != str(session) or grant.made_by == "configuration":
                continue
            with contextlib.suppress(
                WrongLastSequence
            ):  # whoever was faster: the scheduler ends it
                await board.replace(found.number, emptied(grant, now), change, now)
                count += GRANTS.is_open(grant, now)
                log.info("ended", action="gateway.grant", how="deleted", id=grant.id, by=user)
        for prefix in (SESSION, OUTSIDE):
            await reset(edge.bus, f"{prefix}{session}", by=user, now=now)
    except (Unavailable, BusError) as error:
        raise unavailable("what it was allowed can't be ended now; nothing was deleted") from error
    return count


_PATH: Final = "/api/sessions/{key}"
_ERRORS: Final = (403, 404, 422, 503)
ENDPOINTS: Final = (
    Endpoint("DELETE", _PATH, delete_session, {200: ThreadDeleted, 202: ThreadDeleted}, _ERRORS),
)
