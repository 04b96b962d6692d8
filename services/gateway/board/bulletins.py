"""/api/bulletin: what an agent's conversations are told of a person, on a page (SPEC C-2).

Beside it stands what came from outside lately, which no prompt is shown (LOOPS L-18): it's read
anew for each request, so what is forgotten is nowhere.
"""

from __future__ import annotations

from difflib import unified_diff
from itertools import pairwise
from typing import Annotated, Final

from fastapi import Query, Response

from vigil.board.kept import BULLETINS, KeptBoard, Revision
from vigil.contracts import Instant
from vigil.contracts.board import BoardBulletin
from vigil.contracts.board.bulletin import Maker, whole
from vigil.errors import VigilError
from vigil.memory.operations.list import Listed, ListMemories
from vigil.memory.questions import LIMIT_MAX
from vigil.subjects import Scope

from ..access import listed
from ..callers import Caller, Shared, User
from ..http.json import Json
from ..http.wire import Answer
from ..insight.facts import fact_lines
from ..state.edge import Edge
from . import outside

HISTORY_MAX: Final = 64
"""As many revisions of it are kept."""


class BulletinRevision(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """A bulletin as it was."""

    revision: int
    at: Instant
    made_by: Maker
    by: str
    why: str
    text: str
    difference: str
    """To the one before: lines that begin with `-` went, those with `+` came."""


class BulletinView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """A bulletin as it is."""

    owner: str
    agent_id: str
    text: str
    """How things stand, at most 500 words of what is known that rules list, or as many as
    configured that a model wrote. Of what came from outside it has the numbers alone."""
    made_by: Maker
    """Who put into words what is known: `rules` list it, a `model` makes a text of it."""
    is_empty: bool
    """There is nothing to tell; then no conversation is shown it."""
    made_at: Instant
    """When that was known which the text tells: it's looked at every hour, and stays if nothing
    changed."""
    facts: tuple[str, ...]
    """What jobs, hooks and cycles told in a closed form, as it is now: a line each, as prompts have
    them beside it."""
    from_outside: str | None
    """What came from outside in the last 24 hours, each line behind a bar: read it as what others
    wrote. No agent is shown it unasked. null: memory didn't answer."""
    history: tuple[BulletinRevision, ...]
    """With `history`: the newest first."""
    revision: int


class BulletinListing(Answer, frozen=True, kw_only=True):
    """Bulletins, by owner and agent."""

    bulletins: tuple[BulletinView, ...]


async def list_bulletins(
    edge: Shared,
    caller: Caller,
    user: User = None,
    history: Annotated[
        int, Query(ge=0, le=HISTORY_MAX, description="How many of the ones before, too")
    ] = 0,
) -> Response:
    """List one's bulletins, one for each agent, and those of one's teams."""
    board = KeptBoard(edge.bus, BULLETINS)
    found = [one for whose in listed(caller, user) for one in await board.all(whose)]
    ordered = sorted(found, key=lambda one: (one.entity.owner, one.entity.agent))
    views = [await _view(edge, board, one, history) for one in ordered]
    return Json(BulletinListing(bulletins=tuple(views)))


async def _view(
    edge: Edge, board: KeptBoard[BoardBulletin], found: Revision[BoardBulletin], history: int
) -> BulletinView:
    there = found.entity
    before = await board.history(found) if history else []
    since = there.shown_since
    if since is not None:  # what was said before may name what was forgotten
        before = [one for one in before if one.at >= since or one.number == found.number]
    return BulletinView(
        owner=there.owner,
        agent_id=there.agent,
        text=whole(there),
        made_by=there.made_by,
        is_empty=there.is_empty,
        made_at=there.made_at,
        facts=await fact_lines(edge, Scope(there.agent, there.owner)),
        from_outside=await _outside(edge, Scope(there.agent, there.owner)),
        history=revisions_of(before)[:history],
        revision=found.number,
    )


async def _outside(edge: Edge, whose: Scope) -> str | None:
    now = edge.clock.now()
    try:
        found: Listed = await edge.memory.ask(
            whose, ListMemories(since=now - outside.SHOWN_FOR, limit=LIMIT_MAX)
        )
    except VigilError:
        return None
    return outside.block(found.memories)


def revisions_of(revisions: list[Revision[BoardBulletin]]) -> tuple[BulletinRevision, ...]:
    """Return revisions, oldest first, as they are told: the newest first, with what changed."""
    texts = ["", *(whole(one.entity) for one in revisions)]
    return tuple(
        BulletinRevision(
            revision=one.number,
            at=one.at,
            made_by=one.entity.made_by,
            by=one.change.by,
            why=one.change.why,
            text=text,
            difference=_difference(before, text),
        )
        for one, (before, text) in zip(revisions, pairwise(texts), strict=True)
    )[::-1]


def _difference(before: str, text: str) -> str:
    lines = unified_diff(before.splitlines(), text.splitlines(), lineterm="", n=0)
    return "\n".join(one for one in lines if not one.startswith(("---", "+++", "@@")))
