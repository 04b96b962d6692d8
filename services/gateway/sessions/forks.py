"""POST /api/sessions/{key}/forks: a new thread with a conversation's history up to a turn.

The cortex reads that history where it is. Nothing else is carried along: no timer, task, request or
counter of the other conversation. The fork is the first event of its thread, so a thread that has
any record can't become one.
"""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Depends, Request, Response

from vigil.bus.bus import Bus, Message
from vigil.contracts import ControlPayload
from vigil.contracts.past.origins import Fork
from vigil.errors import WrongLastSequence
from vigil.subjects import SessionKey

from ..access import plain_session
from ..callers import Session, Shared, body_of
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import Answer, CursorValue, Forked, OwnThread, RequestBody
from ..state.edge import Edge
from .messages import parent_of

THREAD_KEPT: Final = 40
"""Characters of the other thread's name that begin the name of a fork without one."""
SUFFIX: Final = 8
"""Random hex digits that end it."""


class ForkRequest(RequestBody, frozen=True, kw_only=True):
    """Go on from a turn of a conversation, in a thread of its own."""

    turn: CursorValue | None = None
    """Sequence of the turn (`turn_seq` of what the agent said); absent: the newest."""
    thread: OwnThread | None = None
    """The name of the new thread; absent: one is made."""


class ForkMade(Answer, frozen=True, kw_only=True):
    """The new conversation, and which turn it goes on from."""

    session_key: str
    origin: Forked
    event_id: str
    seq: int


async def fork_session(
    request: Request,
    edge: Shared,
    session: Session,
    wanted: Annotated[ForkRequest, Depends(body_of(ForkRequest))],
) -> Response:
    """Begin a new thread with the history of this one up to a turn, and nothing else of it."""
    turn = await _turn_of(edge.bus, session, wanted.turn)
    thread = wanted.thread or _name_of(edge, session)
    fork = plain_session(SessionKey.of(session.user, session.agent, thread))
    origin = Fork(session=str(session), turn=turn.seq)
    try:
        accepted = await edge.intake.control(
            fork,
            ControlPayload(op="fork", fork=origin),
            is_first=True,
            parent=parent_of(request.scope),
        )
    except WrongLastSequence as error:
        raise Problem(409, f"{fork} has begun: name another thread", field="thread") from error
    made = ForkMade(
        session_key=str(fork),
        origin=Forked(session_key=origin.session, turn=origin.turn),
        event_id=accepted.event_id,
        seq=accepted.seq,
    )
    return Json(made, 201)


async def _turn_of(bus: Bus, session: SessionKey, seq: int | None) -> Message:
    """Return the turn with that sequence, or the newest.

    Raises:
        Problem: 404, there is none.
    """
    if seq is None:
        newest = await bus.get_last(session.stream, session.turns)
        if newest is None:
            raise Problem(404, "there is no such session, or the agent did nothing in it yet")
        return newest
    found = await bus.get_of(session, seq) if seq else None
    if found is None or not session.is_turn(found.subject):
        raise Problem(404, f"{seq} is no turn of {session}", field="turn")
    return found


def _name_of(edge: Edge, session: SessionKey) -> str:
    unique = edge.context.new_id().replace("-", "")[:SUFFIX]
    return f"{session.thread[:THREAD_KEPT]}-fork-{unique}"


_PATH: Final = "/api/sessions/{key}/forks"
_ERRORS: Final = (404, 409, 413, 422, 503)
ENDPOINTS: Final = (Endpoint("POST", _PATH, fork_session, {201: ForkMade}, _ERRORS, ForkRequest),)
