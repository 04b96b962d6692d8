"""What all endpoints of one kind of entity on the board have in common (LOOPS L-15).

Each is its owner's: others are answered as if it weren't there, and an admin may look, and end. It
changes by compare-and-set, on the revision that `If-Match` names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Generic

import structlog

from vigil.board.kept import KeptBoard
from vigil.board.kind import E, KeptKind, Revision
from vigil.contracts import Change
from vigil.errors import WrongLastSequence
from vigil.settings.config import Config
from vigil.settings.tokens import Principal
from vigil.subjects import Scope
from vigil.tasks.check import check_text
from vigil.teams import may_act

from .. import preconditions
from ..access import check_reach, listed
from ..http.problem import Problem, erasing
from ..state.edge import Edge

log = structlog.get_logger("vigil.gateway")

WHY_LENGTH_MAX: Final = 500


class KeptDesk(Generic[E]):
    """Serves the entities of one kind."""

    def __init__(
        self, kind: KeptKind[E], configured: Callable[[Config], KeptKind[E]] | None = None
    ) -> None:
        """Args: configured: of a kind whose bound is a setting, the kind with it."""
        self._kind: KeptKind[E] = kind
        self._configured: Callable[[Config], KeptKind[E]] = configured or (lambda _: kind)

    def _board(self, edge: Edge) -> KeptBoard[E]:
        return KeptBoard(edge.bus, self._configured(edge.context.settings.config))

    async def all(self, edge: Edge, caller: Principal, user: str | None) -> list[Revision[E]]:
        """Return what a list may show. Raises: Problem, InvalidInput, Unavailable."""
        board = self._board(edge)
        return [one for whose in listed(caller, user) for one in await board.all(whose)]

    async def find(self, edge: Edge, whose: Iterable[Scope], id_: str) -> Revision[E]:
        """Raises: Problem, 404: they have no such thing."""
        found = await self._board(edge).find(whose, id_)
        if found is None:
            raise Problem(404, f"there is no such {self._kind.name}")
        return found

    async def changeable(
        self, edge: Edge, caller: Principal, id_: str, expected: int | None
    ) -> Revision[E]:
        """Return what may be changed. Raises: Problem."""
        found = await self.find(edge, caller.reach, id_)
        if edge.switches.is_erasing(found.entity.owner):
            raise erasing()
        preconditions.check(expected, found.number)
        if getattr(found.entity, "is_removed", False):
            raise Problem(409, "it was removed")
        return found

    async def create(self, edge: Edge, caller: Principal, entity: E, why: str) -> Revision[E]:
        """Store something new, or learned. Raises: BoundReached, InvalidInput, Unavailable."""
        change, now = change_by(caller, why), edge.clock.now()
        made = await self._board(edge).add(entity, change, now)
        self.tell("made" if self._kind.merge is None else "learned", made, caller)
        return made

    async def store(
        self, edge: Edge, caller: Principal, found: Revision[E], entity: E, why: str
    ) -> Revision[E]:
        """Store what it is now. Raises: Problem, 412: somebody was faster; as `create`."""
        if entity == found.entity:
            return found
        now, change = edge.clock.now(), change_by(caller, why)
        try:
            made = await self._board(edge).change(found, entity, change, now)
        except WrongLastSequence:
            raise preconditions.changed() from None
        self.tell("changed", made, caller)
        return made

    def tell(self, done: str, made: Revision[E], caller: Principal) -> None:
        """Log what was done to it."""
        kind, id_ = self._kind.name, made.entity.id
        log.info("changed", action="gateway.board", how=done, kind=kind, id=id_, by=caller.user)

    async def revisions(self, edge: Edge, found: Revision[E]) -> list[Revision[E]]:
        """Return the revisions that are kept, the oldest first: at most 64."""
        return await self._board(edge).history(found)

    def check_leave(
        self, caller: Principal, entity: E, *, is_end: bool, field: str | None = None
    ) -> None:
        """Raises: Problem, 403: only the owner says what is done; an admin may end it."""
        if not is_end and not may_act(caller.user, entity.owner, entity.agent, caller.teams):
            raise Problem(403, "only its owner may do that; an admin may end it", field=field)


def change_by(caller: Principal, why: str) -> Change:
    """Raises: InvalidInput: the reason is too long."""
    return Change(by=caller.user, why=check_text("why", why, WHY_LENGTH_MAX))


def owner_for(edge: Edge, caller: Principal, agent: str, user: str | None = None) -> str:
    """Return who owns what the caller makes with an agent.

    Args:
        user: as the request names it; nobody but the caller.

    Raises:
        Problem: 403, the caller is in no such team, or names somebody else; 409, being erased.
    """
    if edge.switches.is_erasing(caller.user):
        raise erasing()
    owner = caller.owner_of(agent)
    check_reach(caller, owner, agent, "agentId")
    if user is not None and user not in (caller.user, owner):
        raise Problem(403, "only its owner makes it", field="userId")
    return owner
