"""/api/actions: what agents did without being asked, and how people liked it (SPEC G-5)."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Depends, Query, Response

from vigil.actions.log import judged
from vigil.board.kept import ACTIONS, Revision
from vigil.contracts import Instant
from vigil.contracts.board import BoardAction
from vigil.contracts.board.action import ActionFeedback, ActionOutcome

from .. import preconditions
from ..callers import Caller, Shared, User, body_of, id_of
from ..http.json import Json
from ..http.wire import Answer, RequestBody
from ..preconditions import Expected
from .desk import KeptDesk

DESK: Final = KeptDesk(ACTIONS)
Id = Annotated[str, Depends(id_of("an action"))]


class FeedbackBody(RequestBody, frozen=True, kw_only=True):
    """What you think of an action."""

    is_good: bool
    text: str = ""
    """In at most 1,000 characters."""


class ActionView(Answer, frozen=True, kw_only=True):
    """Something that an agent did by itself."""

    id: str
    number: int
    owner: str
    agent_id: str
    type: str
    """The tool that was called."""
    description: str
    goal: str
    outcome: ActionOutcome
    """`unknown`: whether it was done can't be told."""
    session_key: str
    is_tainted: bool
    feedback: ActionFeedback | None
    created_at: Instant
    ended_at: Instant | None
    revision: int


class ActionListing(Answer, frozen=True, kw_only=True):
    """Actions, the newest first."""

    actions: tuple[ActionView, ...]


def _view(found: Revision[BoardAction]) -> ActionView:
    action = found.entity
    same: dict[str, Any] = {
        name: getattr(action, name) for name in BoardAction.__struct_fields__ if name != "agent"
    }
    return ActionView(**same, agent_id=action.agent, revision=found.number)


async def list_actions(
    edge: Shared,
    caller: Caller,
    outcome: Annotated[ActionOutcome | None, Query(description="Only those")] = None,
    user: User = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Response:
    """List what agents did without being asked, the newest first: 1,000 of each are kept."""
    there = await DESK.all(edge, caller, user)
    found = [one for one in there if outcome in (None, one.entity.outcome)]
    found.sort(key=lambda one: (one.entity.created_at, one.entity.number), reverse=True)
    return Json(ActionListing(actions=tuple(map(_view, found[:limit]))))


async def get_action(edge: Shared, caller: Caller, id_: Id) -> Response:
    """Show an action; its ETag is its revision."""
    return _shown(await DESK.find(edge, caller.reach, id_))


async def judge_action(
    edge: Shared,
    caller: Caller,
    id_: Id,
    wanted: Annotated[FeedbackBody, Depends(body_of(FeedbackBody))],
    expected: Expected,
) -> Response:
    """Say what you think of an action; your newest word holds."""
    found = await DESK.changeable(edge, caller, id_, expected)
    DESK.check_leave(caller, found.entity, is_end=False)
    now = edge.clock.now()
    said = ActionFeedback(is_good=wanted.is_good, text=wanted.text, by=caller.user, at=now)
    return _shown(await DESK.store(edge, caller, found, judged(found.entity, said), ""))


def _shown(found: Revision[BoardAction]) -> Response:
    return preconditions.tagged(Json(_view(found)), found.number)
