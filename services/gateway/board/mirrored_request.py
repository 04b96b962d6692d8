"""What a caller may do with what sessions put on the board: see it. What they order is each kind's.

Each is its owner's: others are answered as if it weren't there, and an admin may look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic

from fastapi import Response

from vigil.board.mirror import Board, Located
from vigil.board.mirrored import E, MirroredKind
from vigil.errors import InvalidInput
from vigil.settings.tokens import Principal
from vigil.subjects import Scope, check_part

from ..http.json import Json
from ..http.problem import Problem
from ..state.edge import Edge


class MirroredRequest(Generic[E]):
    """Answers one request about a kind. Every method raises Problem, InvalidInput, Unavailable."""

    def __init__(self, kind: MirroredKind[E], edge: Edge, caller: Principal) -> None:
        self._kind = kind
        self._edge = edge
        self._caller = caller
        self._board: Board[E] = Board(edge.bus, kind.record)

    async def get(self, *, id_: str) -> Response:
        """Show one."""
        return Json(self._kind.answer(await self._find(id_)))

    async def _listed(
        self, whose: Iterable[Scope], limit: int, is_wanted: Callable[[E], bool], after: str
    ) -> Response:
        whose, last = tuple(whose), None
        if after and (last := await self._board.find(whose, check_part("after", after))) is None:
            raise InvalidInput("after", "there is none of that id")
        found = await self._board.newest(whose, limit=limit + 1, is_wanted=is_wanted, after=last)
        return Json(self._kind.listing(found, limit))

    async def _find(self, id_: str) -> E:
        return (await self._located(id_)).entity

    async def _located(self, id_: str) -> Located[E]:
        found = await self._board.entry(self._caller.nearest, id_)
        if found is None:
            raise Problem(404, f"there is no {self._kind.noun} {id_}", field="id")
        return found
