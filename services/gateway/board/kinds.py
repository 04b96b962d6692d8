"""What is served of each kind of the board: made of what `vigil.board.kinds` declares.

Here is who may do what, and how it's stored; what that makes of a record is said by the kind.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
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
    SplitOperation,
    kinds,
)
from vigil.settings.tokens import Principal
from vigil.subjects import Scope

from .. import preconditions
from ..callers import Caller, Shared, User, body_of, id_of
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.problem import Problem
from ..preconditions import Expected
from ..state.edge import Edge
from . import bulletins
from .desk import KeptDesk, change_by, owner_for

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
        lists, changes, answer = kind.lists, kind.changes, kind.detail or kind.view
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
        if (splits := kind.splits) is not None:
            answers, handler, path = {201: lists.answer}, self._split(splits), f"{one}/parts"
            found.append(Endpoint("POST", path, handler, answers, CHANGE_ERRORS, splits.body))
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
            f"list_{self._kind.plural}",
            lists.text,
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

        history = " with its history" if self._kind.state else ""
        text = f"Show {self._kind.called}{history}; its ETag is its revision."
        return self._of_one(f"get_{self._kind.noun}", text, answer)

    def _make(self, makes: MakeOperation[Any]) -> Callable[..., Any]:
        async def answer(edge: Edge, caller: Principal, wanted: Any) -> Response:
            user = getattr(wanted, "user_id", None)
            whose = Scope(wanted.agent_id, owner_for(edge, caller, wanted.agent_id, user))
            entity = makes.make(wanted, whose, _new_id(edge), _occasion(edge, caller))
            if makes.goal and getattr(entity, makes.goal):
                await goals.check_there(edge.bus, whose, getattr(entity, makes.goal))
            made = await self._desk.create(edge, caller, entity, wanted.why)
            is_new = makes.is_new is None or makes.is_new(made.entity)
            return await self._told(edge, caller, made, 201 if is_new else 200)

        return _handler(
            f"make_{self._kind.noun}",
            makes.text,
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
            changes.name or f"change_{self._kind.noun}",
            changes.text,
            answer,
            wanted=(_body(changes.body), _NONE),
            expected=(Expected, _NONE),
        )

    def _end(self, ends: EndOperation[Any]) -> Callable[..., Any]:
        async def answer(edge: Edge, caller: Principal, id_: str, expected: int | None) -> Response:
            found = await self._desk.changeable(edge, caller, id_, expected)
            entity = ends.end(found.entity, _occasion(edge, caller))
            return await self._told(
                edge, caller, await self._desk.store(edge, caller, found, entity, ends.why)
            )

        return self._of_one(ends.name, ends.text, answer, expected=(Expected, _NONE))

    def _split(self, splits: SplitOperation[Any]) -> Callable[..., Any]:
        async def answer(
            edge: Edge, caller: Principal, id_: str, wanted: Any, expected: int | None
        ) -> Response:
            found = await self._desk.changeable(edge, caller, id_, expected)
            self._desk.check_leave(caller, found.entity, is_end=False, field=splits.field)
            if (status := found.entity.status) not in splits.statuses:
                raise Problem(409, f"it is {status}: there is nothing to split")
            occasion, change = _occasion(edge, caller), change_by(caller, wanted.why)
            parts = splits.split(found.entity, wanted, partial(_new_id, edge), occasion)
            kept = self._kind.kept_by(occasion.config)
            made = await goals.split(edge.bus, kept, found.entity, parts, change, occasion.now)
            return Json(self._kind.listing(made, occasion), 201)

        body = _body(splits.body)
        return self._of_one(
            splits.name, splits.text, answer, wanted=(body, _NONE), expected=(Expected, _NONE)
        )

    # ------------------------------------------------------------ inside

    def _of_one(
        self, name: str, text: str, work: Callable[..., Awaitable[Response]], **more: Any
    ) -> Callable[..., Any]:
        id_ = Annotated[str, Depends(id_of(self._kind.called))]
        return _handler(
            name,
            text,
            work,
            edge=(Shared, _NONE),
            caller=(Caller, _NONE),
            id_=(id_, _NONE),
            **more,
        )

    async def _told(
        self, edge: Edge, caller: Principal, found: Revision[Any], status: int = 200
    ) -> Response:
        history = await self._desk.revisions(edge, found) if self._kind.state else []
        answer = self._kind.told(found, history, _occasion(edge, caller))
        return preconditions.tagged(Json(answer, status), found.number)


def _new_id(edge: Edge) -> str:
    return edge.context.new_id().replace("-", "")


def _body(kind: Any) -> Any:
    return Annotated[kind, Depends(body_of(kind))]


def _occasion(edge: Edge, caller: Principal) -> Occasion:
    config = edge.context.settings.config
    return Occasion(now=edge.clock.now(), by=caller.user, config=config)


def _handler(
    name: str, text: str, work: Callable[..., Awaitable[Response]], **parameters: tuple[Any, Any]
) -> Callable[..., Any]:
    """Let a function be what an operation is called, and have the parameters that FastAPI reads.

    Args:
        parameters: the type of each, and its default.
    """
    work.__name__, work.__doc__ = name, text
    work.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                parameter, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
            )
            for parameter, (annotation, default) in parameters.items()
        ]
    )
    return work


def endpoints() -> Iterator[Endpoint]:
    """Yield what is served of all kinds, and of bulletins, which nobody changes by hand."""
    listing: dict[int, type | None] = {200: bulletins.BulletinListing}
    yield Endpoint("GET", "/api/bulletin", bulletins.list_bulletins, listing, LIST_ERRORS)
    for kind in kinds().values():
        yield from ServedKind(kind).endpoints()
