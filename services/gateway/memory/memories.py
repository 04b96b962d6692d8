"""/api/memories and /api/maintenance: what agents remember, for people and their programs (SPEC M).

Operations have no code here: handlers are made of `vigil.memory.operations`.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Annotated, Final, TypeVar

import msgspec
from fastapi import Depends, Request, Response

from vigil.errors import InvalidInput
from vigil.memory import wire
from vigil.memory.operation import Operation, Route, http_view, operations, outside
from vigil.memory.questions import Limit, Mode, Rebuild, Sort
from vigil.memory.view import Pick, View, view

from ..callers import Admin, Caller, Shared, body_of, edge_of, id_of
from ..http import body
from ..http.json import Json
from ..http.query import query_of
from .questions import Remembering

T = TypeVar("T")
Handler = Callable[..., Awaitable[Response]]
_LISTS: Final = frozenset({"type"})
_maintain: Final = msgspec.json.Decoder(wire.MaintainBody)
_rebuild: Final = msgspec.json.Decoder(Rebuild)


async def _remembering(edge: Shared, caller: Caller) -> Remembering:
    return Remembering(edge, caller)


Memory = Annotated[Remembering, Depends(_remembering)]
Id = Annotated[str, Depends(id_of("a memory"))]


# ---------------------------------------------------------------- operations


def served() -> list[tuple[Operation, Route]]:
    """Return the operations that have a place of their own, the narrower paths first."""
    found = [
        (one, one.route)
        for one in operations().values()
        if one.route is not None and one.name not in (_RECALL, _LIST)
    ]
    return sorted(found, key=lambda pair: "{" in pair[1].path)


def handler_of(operation: Operation, route: Route) -> Handler:
    """Return what answers for an operation: its view of the query or the body is all it takes."""
    view = http_view(operation)
    if "{id}" in route.path:
        handler = _with_id(operation, view)
    elif route.has_body:
        handler = _with_body(operation, view, route.status)
    else:
        handler = _with_query(operation, view)
    handler.__name__, handler.__doc__ = route.name, route.text
    return handler


def _with_id(operation: Operation, view: View) -> Handler:
    async def answer(request: Request, memory: Memory, id_: Id) -> Response:
        whose = query_of(request.scope["query_string"], wire.Whose)
        given = view.kind(id=id_, user_id=whose.user_id, agent_id=whose.agent_id)
        return Json(await memory.ask(operation, given, view.fields(given)))

    return answer


def _with_body(operation: Operation, view: View, status: int) -> Handler:
    read = body_of(view.kind)

    async def answer(request: Request, memory: Memory) -> Response:
        given = await read(request)
        return Json(await memory.ask(operation, given, view.fields(given)), status)

    return answer


def _with_query(operation: Operation, view: View) -> Handler:
    async def answer(request: Request, memory: Memory) -> Response:
        given = query_of(request.scope["query_string"], view.kind, lists=_LISTS)
        return Json(await memory.ask(operation, given, view.fields(given)))

    return answer


# ---------------------------------------------------------------- recall and list, of one path

_RECALL, _LIST = "recall", "list"


@functools.cache
def search_view() -> View:
    """Return the query of both: what only one of them takes may be absent."""
    recall, listed = operations()[_RECALL].question, operations()[_LIST].question
    of_recall = {
        "query": Pick(default=""),
        "mode": Pick(kind=Mode | None, default=None),
        "with_pruned": Pick(),
    }
    of_both = {
        **outside(listed),
        "limit": Pick(kind=Limit | None, default=None),
        "sort": Pick(kind=Sort | None, default=None),
    }
    first = view("Look", recall, of_recall, base=wire.Whose, text="")
    return View(
        kind=view("Look", listed, of_both, base=first.kind, text=listed.__doc__ or "").kind,
        picks=of_recall | of_both,
    )


async def find_memories(request: Request, memory: Memory) -> Response:
    """Recall what fits `q`, the best first, each with its score; without `q`, list."""
    wanted = query_of(request.scope["query_string"], search_view().kind, lists=_LISTS)
    fields = search_view().fields(wanted)
    if wanted.query.strip():
        asked, reason = operations()[_RECALL], "is for lists, so without q"
    else:
        asked, reason = operations()[_LIST], "is for a recall, so with q"
        fields.pop("query")
    for name in fields.keys() - set(asked.question.__struct_fields__):
        if fields.pop(name):
            raise InvalidInput(name, reason)
    return Json(await memory.ask(asked, wanted, fields))


# ---------------------------------------------------------------- of the whole service


async def rebuild_memories(request: Request, memory: Memory, _: Admin) -> Response:
    """Have every replica of the memory service make its indexes anew from the log."""
    return Json(await memory.rebuild(await _optional(request, _rebuild)), 202)


async def maintain_memories(request: Request, memory: Memory) -> Response:
    """Prune and merge now: your own memory, or all of them for an admin who names none."""
    return Json(await memory.maintain(await _optional(request, _maintain)))


async def _optional(request: Request, decoder: msgspec.json.Decoder[T]) -> T:
    """Read a body that may be absent."""
    config = edge_of(request).config
    data = await body.read(request.scope, request.receive, config.body_bytes_max)
    return body.decode(data or b"{}", decoder, config.json_depth_max)
