"""What is served of each kind of the board: made of what `vigil.board.kinds` declares.

Here is who may do what, and how it's stored; what that makes of a record is said by the kind.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final

from fastapi import Depends, Query, Response

from vigil.board import goals
from vigil.board.kind import Revision
from vigil.board.outside import (
    BoardKind,
    ChangeOperation,
    EndOperation,
    MakeOperation,
    Occasion,
    kinds,
)
from vigil.settings.tokens import Principal
from vigil.subjects import Scope

from .. import preconditions
from ..callers import Caller, Shared, User, body_of, id_of
from ..endpoint import Endpoint
from ..http.json import Json
from ..preconditions import Expected
from ..state.edge import Edge
from .desk import KeptDesk, owner_for

LIST_ERRORS: Final = (403, 422, 503)
READ_ERRORS: Final = (404, 422, 503)
MAKE_ERRORS: Final = (403, 413, 422, 503)
CHANGE_ERRORS: Final = (403, 404, 409, 412, 413, 422, 503)
END_ERRORS: Final = (404, 409, 412, 422, 503)
_NONE: Final = inspect.Parameter.empty


class ServedKind:
    """Serves what a kind declares."""

    def __init__(self, kind: BoardKind[Any]) -> None:
        self._kind = kind
        self._desk: KeptDesk[Any] = KeptDesk(kind.kept, kind.kept_by)

    def endpoints(self) -> list[Endpoint]:
        """Return what there is of it, in the order of its life."""
        kind, one = self._kind, f"{self._kind.path}/{{id}}"
        lists, reads, changes = kind.lists, kind.reads, kind.changes
        answer = reads.answer
        found = [
            Endpoint("GET", kind.path, self._list(), {200: lists.answer}, LIST_ERRORS),
            Endpoint("GET", one, self._get(), {200: answer}, READ_ERRORS),
        ]
        if (makes := kind.makes) is not None:
            answers: dict[int, type | None] = {201: answer}
            answers |= {200: answer} if makes.is_new else {}
            errors, make = (*makes.errors, *MAKE_ERRORS), self._make(makes)
            found.insert(1, Endpoint("POST", kind.path, make, answers, errors, makes.body))
        change = self._change(changes)
        found.append(Endpoint("PATCH", one, change, {200: answer}, CHANGE_ERRORS, changes.body))
        if kind.ends is not None:
            found.append(Endpoint("DELETE", one, self._end(kind.ends), {200: answer}, END_ERRORS))
        return found

    # ------------------------------------------------------------ handlers

    def _list(self) -> Callable[..., Any]:
        lists = self._kind.lists

        async def answer(
            edge: Edge, caller: Principal, user: str | None, limit: int, **chosen: Any
        ) -> Response:
            there = await self._desk.all(edge, caller, user)
            occasion = _occasion(edge, caller)
            return Json(self._kind.listed(there, chosen[lists.by], limit, occasion))

        text = "Only those" + (lists.unchosen and f"; absent: {lists.unchosen}")
        return _handler(
            lists,
            answer,
            edge=(Shared, _NONE),
            caller=(Caller, _NONE),
            **{lists.by: (Annotated[lists.choices | None, Query(description=text)], None)},
            user=(User, None),
            limit=(Annotated[int, Query(ge=1, le=500)], lists.limit),
        )

    def _get(self) -> Callable[..., Any]:
        async def answer(edge: Edge, caller: Principal, id_: str) -> Response:
            return await self._told(edge, caller, await self._desk.find(edge, caller.reach, id_))

        return self._of_one(self._kind.reads, answer)

    def _make(self, makes: MakeOperation[Any]) -> Callable[..., Any]:
        async def answer(edge: Edge, caller: Principal, wanted: Any) -> Response:
            user = getattr(wanted, "user_id", None)
            whose = Scope(wanted.agent_id, owner_for(edge, caller, wanted.agent_id, user))
            new_id = edge.context.new_id().replace("-", "")
            entity = makes.make(wanted, whose, new_id, _occasion(edge, caller))
            if makes.goal and getattr(entity, makes.goal):
                await goals.check_there(edge.bus, whose, getattr(entity, makes.goal))
            made = await self._desk.create(edge, caller, entity, wanted.why)
            is_new = makes.is_new is None or makes.is_new(made.entity)
            return await self._told(edge, caller, made, 201 if is_new else 200)

        return _handler(
            makes,
            answer,
            edge=(Shared, _NONE),
            caller=(Caller, _NONE),
            wanted=(_body(makes.body), _NONE),
        )

    def _change(self, changes: ChangeOperation[Any]) -> Callable[..., Any]:
        async def answer(
            edge: Edge, caller: Principal, id_: str, wanted: Any, expected: int | None
        ) -> Response:
            found = await self._desk.changeable(edge, caller, id_, expected)
            is_end = changes.is_end(wanted)
            self._desk.check_leave(caller, found.entity, is_end=is_end, field=changes.field)
            entity = changes.change(found.entity, wanted, _occasion(edge, caller))
            why = getattr(wanted, "why", "")
            return await self._told(
                edge, caller, await self._desk.store(edge, caller, found, entity, why)
            )

        return self._of_one(
            changes, answer, wanted=(_body(changes.body), _NONE), expected=(Expected, _NONE)
        )

    def _end(self, ends: EndOperation[Any]) -> Callable[..., Any]:
        async def answer(edge: Edge, caller: Principal, id_: str, expected: int | None) -> Response:
            found = await self._desk.changeable(edge, caller, id_, expected)
            entity = ends.end(found.entity, _occasion(edge, caller))
            return await self._told(
                edge, caller, await self._desk.store(edge, caller, found, entity, ends.why)
            )

        return self._of_one(ends, answer, expected=(Expected, _NONE))

    # ------------------------------------------------------------ inside

    def _of_one(
        self, operation: Any, work: Callable[..., Awaitable[Response]], **more: Any
    ) -> Callable[..., Any]:
        id_ = Annotated[str, Depends(id_of(self._kind.called))]
        return _handler(
            operation,
            work,
            edge=(Shared, _NONE),
            caller=(Caller, _NONE),
            id_=(id_, _NONE),
            **more,
        )

    async def _told(
        self, edge: Edge, caller: Principal, found: Revision[Any], status: int = 200
    ) -> Response:
        history = await self._desk.revisions(edge, found) if self._kind.reads.state else []
        answer = self._kind.told(found, history, _occasion(edge, caller))
        return preconditions.tagged(Json(answer, status), found.number)


def _body(kind: Any) -> Any:
    return Annotated[kind, Depends(body_of(kind))]


def _occasion(edge: Edge, caller: Principal) -> Occasion:
    config = edge.context.settings.config
    return Occasion(now=edge.clock.now(), by=caller.user, config=config)


def _handler(
    operation: Any, work: Callable[..., Awaitable[Response]], **parameters: tuple[Any, Any]
) -> Callable[..., Any]:
    """Let a function be what an operation is called, and have the parameters that FastAPI reads.

    Args:
        parameters: the type of each, and its default.
    """
    work.__name__, work.__doc__ = operation.name, operation.text
    work.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
            )
            for name, (annotation, default) in parameters.items()
        ]
    )
    return work


ENDPOINTS: Final = tuple(one for kind in kinds().values() for one in ServedKind(kind).endpoints())
