"""What a caller may do with one kind of entity on the board (LOOPS L-15).

Each is its owner's: others are answered as if it weren't there, and an admin may look, and end. It
changes by compare-and-set, on the revision that `If-Match` names. What that makes of a record is
said by the kind (`vigil.board.kinds`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Generic

import structlog
from fastapi import Response
from msgspec.structs import replace

from vigil.board import goals
from vigil.board.kept import KeptBoard
from vigil.board.kind import E, Revision
from vigil.board.named import check_there
from vigil.board.outside import (
    BoardKind,
    ChangeOperation,
    EndOperation,
    MakeOperation,
    Occasion,
    SplitOperation,
)
from vigil.contracts import Change
from vigil.settings.tokens import Principal
from vigil.subjects import Scope
from vigil.tasks.check import check_text
from vigil.teams import holding, may_act

from .. import preconditions
from ..access import check_reach, listed
from ..http.json import Json
from ..http.problem import Problem, erasing
from ..known_agents import check_agent
from ..state.edge import Edge

log = structlog.get_logger("vigil.gateway")

WHY_LENGTH_MAX: Final = 500


class KindRequest(Generic[E]):
    """Answers one request about a kind.

    Every method raises Problem; InvalidInput, BoundReached among it; and Unavailable.
    """

    of_admins = "end it"
    """What an admin may do who isn't its owner."""

    def __init__(self, kind: BoardKind[E], edge: Edge, caller: Principal) -> None:
        config = edge.context.settings.config
        self._kind: BoardKind[E] = kind
        self._edge = edge
        self._caller = caller
        self._kept = kind.kept_by(config)
        self._board = KeptBoard(edge.bus, self._kept)
        self._beside = None if kind.beside is None else KeptBoard(edge.bus, kind.beside)
        self._occasion = Occasion(now=edge.clock.now(), by=caller.user, config=config)

    async def list(
        self, *, user: str | None, limit: int | None = None, after: str = "", **chosen: Any
    ) -> Response:
        """Answer a list; `chosen` is the one parameter that the kind names."""
        whose = listed(self._caller, user)
        there = [one for part in whose for one in await self._board.all(part)]
        wanted = chosen[self._kind.lists.by]
        if self._beside is not None and there:
            self._count([one for part in whose for one in await self._beside.all(part)])
        found = self._kind.chosen(there, wanted, after, self._occasion)
        await self._read_beside(found[:limit])
        return Json(self._kind.listing(found, self._occasion, limit))

    async def get(self, *, id_: str) -> Response:
        """Show one."""
        return await self._answer(await self._find(id_))

    async def make(self, makes: MakeOperation[E], *, wanted: Any) -> Response:
        """Make one, or learn something: it's the caller's, or their team's."""
        user, agent = getattr(wanted, "user_id", None), wanted.agent_id
        whose = Scope(agent, owner_for(self._edge, self._caller, agent, user))
        await check_agent(self._edge, self._caller, agent)
        for one in makes.names:
            if id_ := getattr(wanted, one.field):
                await check_there(self._edge.bus, whose, one, id_)
        await self._read_for(wanted, whose, self._caller.user)
        entity = makes.make(wanted, whose, self._new_id(), self._occasion)
        made = await self._add(makes, entity, self._change_by(wanted.why, makes.cause(entity)))
        self._log("made" if self._kept.merge is None else "learned", made)
        is_new = makes.is_new is None or makes.is_new(made.entity)
        return await self._answer(made, 201 if is_new else 200)

    async def change(
        self, changes: ChangeOperation[E], *, id_: str, wanted: Any, expected: int | None
    ) -> Response:
        """Change one as it was read."""

        async def change() -> Revision[E]:
            found = await self._changeable(id_, expected)
            if not changes.is_end(wanted):
                self._check_leave(found.entity, changes.field)
            whose = Scope(found.entity.agent, found.entity.owner)
            await self._read_for(wanted, whose, whose.owner)
            entity = changes.change(found.entity, wanted, self._occasion)
            return await self._stored(found, entity, getattr(wanted, "why", ""))

        return await self._answer(await preconditions.changed(expected, change))

    async def end(self, ends: EndOperation[E], *, id_: str, expected: int | None) -> Response:
        """End one as it was read."""

        async def end() -> Revision[E]:
            found = await self._changeable(id_, expected)
            return await self._stored(found, ends.end(found.entity, self._occasion), ends.why)

        return await self._answer(await preconditions.changed(expected, end))

    async def split(
        self, splits: SplitOperation[E], *, id_: str, wanted: Any, expected: int | None
    ) -> Response:
        """Make parts of one as it was read."""
        found = await self._changeable(id_, expected)
        whole: Any = found.entity
        self._check_leave(whole, splits.field)
        if whole.status not in splits.statuses:
            raise Problem(409, f"it is {whole.status}: there is nothing to split")
        parts: Any = splits.split(whole, wanted, self._new_id, self._occasion)
        change, now = self._change_by(wanted.why), self._occasion.now
        kept: Any = self._kept
        made: Any = await goals.split(self._edge.bus, kept, whole, parts, change, now)
        return Json(self._kind.listing(made, self._occasion), 201)

    # ------------------------------------------------------------ what a kind may do otherwise

    async def _read_for(self, wanted: Any, whose: Scope, user: str) -> None:
        """Read what a record is made or changed by, besides what is asked, into the occasion.

        Args:
            user: by whose clocks it is.
        """

    async def _read_beside(self, shown: Sequence[Revision[E]]) -> None:
        """Read what is shown of these besides what they hold, into the occasion."""

    async def _add(self, makes: MakeOperation[E], entity: E, change: Change) -> Revision[E]:
        now, among = self._occasion.now, makes.among
        if among is None:
            return await self._board.add(entity, change, now)
        return await self._board.create(
            lambda others: among(entity, others),
            holding(entity.owner, entity.agent),
            change,
            now,
        )

    async def _put(self, found: Revision[E], entity: E, change: Change) -> Revision[E]:
        return await self._board.change(found, entity, change, self._occasion.now)

    def _check_changeable(self, entity: E) -> None:
        """Raises: Problem, nobody changes it as it is."""
        if getattr(entity, "is_removed", False):
            raise Problem(409, "it was removed")

    # ------------------------------------------------------------ inside

    async def _find(self, id_: str) -> Revision[E]:
        found = await self._board.find(self._caller.nearest, id_)
        if found is None:
            raise Problem(404, f"there is no such {self._kind.called.partition(' ')[2]}")
        return found

    async def _changeable(self, id_: str, expected: int | None) -> Revision[E]:
        found = await self._find(id_)
        if self._edge.switches.is_erasing(found.entity.owner):
            raise erasing()
        preconditions.check(expected, found.number)
        self._check_changeable(found.entity)
        return found

    def _check_leave(self, entity: E, field: str | None) -> None:
        """Refuse whoever isn't its owner: they say what is done; an admin may end it."""
        if not may_act(self._caller.user, entity.owner, entity.agent, self._caller.teams):
            raise Problem(
                403, f"only its owner may do that; an admin may {self.of_admins}", field=field
            )

    async def _stored(self, found: Revision[E], entity: E, why: str) -> Revision[E]:
        """Return what is stored then. Raises: WrongLastSequence."""
        change = self._change_by(why)
        if entity == found.entity:
            return found
        stored = await self._put(found, entity, change)
        self._log("changed", stored)
        return stored

    async def _answer(self, found: Revision[E], status: int = 200) -> Response:
        history = await self._board.history(found) if self._kind.state else []
        if self._beside is not None:
            whose = Scope(found.entity.agent, found.entity.owner)
            counted = await self._beside.find([whose], found.entity.id)
            self._count([] if counted is None else [counted])
        await self._read_beside([found, *history])
        answer = self._kind.answer(found, history, self._occasion)
        return preconditions.tagged(Json(answer, status), found.number)

    def _count(self, beside: Iterable[Revision[Any]]) -> None:
        """Take in what is counted of those that are looked at."""
        counted = {one.entity.id: one.entity for one in beside}
        self._occasion = replace(self._occasion, beside=counted)

    def _change_by(self, why: str, cause: str = "") -> Change:
        why = check_text("why", why, WHY_LENGTH_MAX)
        return Change(by=self._caller.user, why=why, cause=cause)

    def _new_id(self) -> str:
        return self._edge.context.new_id().replace("-", "")

    def _log(self, done: str, made: Revision[E]) -> None:
        kind, id_, by = self._kept.name, made.entity.id, self._caller.user
        log.info("changed", action=self._kind.action, how=done, kind=kind, id=id_, by=by)


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
