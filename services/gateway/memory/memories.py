"""/api/memories and /api/maintenance: what agents remember, for people and their programs (SPEC M).

Queries are read by :mod:`.query`, bodies as everywhere; :mod:`.remembering` does the rest.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeVar

import msgspec
from fastapi import Depends, Path, Request, Response

from vigil.errors import InvalidInput
from vigil.memory import wire

from ..http import body
from ..http.query import query_of
from ..http.routes import (
    Admin,
    Caller,
    Json,
    Shared,
    body_of,
    edge_of,
)
from ..http.wire import ID_SCHEMA
from .questions import Remembering

T = TypeVar("T")
_LISTS: Final = frozenset({"type"})
_maintain: Final = msgspec.json.Decoder(wire.MaintainBody)
_rebuild: Final = msgspec.json.Decoder(wire.RebuildBody)


async def _remembering(edge: Shared, caller: Caller) -> Remembering:
    return Remembering(edge, caller)


async def _whose(request: Request) -> wire.Whose:
    return query_of(request.scope["query_string"], wire.Whose)


async def _memory_id(
    id_: Annotated[
        str,
        Path(alias="id", description="Of a memory: 32 hex digits", json_schema_extra=ID_SCHEMA),
    ],
) -> str:
    try:
        return msgspec.convert(id_, wire.MemoryId)
    except msgspec.ValidationError as error:
        raise InvalidInput("id", "must be 32 hex digits") from error


Memory = Annotated[Remembering, Depends(_remembering)]
Whose = Annotated[wire.Whose, Depends(_whose)]
Id = Annotated[str, Depends(_memory_id)]


async def save_memory(
    memory: Memory, saved: Annotated[wire.SaveBody, Depends(body_of(wire.SaveBody))]
) -> Response:
    """Remember something. It's stored when this answers, and the next recall finds it."""
    return Json(await memory.save(saved), 201)


async def find_memories(request: Request, memory: Memory) -> Response:
    """Recall what fits `q`, the best first, each with its score; without `q`, list."""
    wanted = query_of(request.scope["query_string"], wire.Look, lists=_LISTS)
    return Json(await memory.look(wanted))


async def get_memory(memory: Memory, whose: Whose, id_: Id) -> Response:
    """Show one memory: what it was made of, what became of it, its associations."""
    return Json(await memory.get(whose, id_))


async def forget_memory(memory: Memory, whose: Whose, id_: Id) -> Response:
    """Forget a memory: no recall and no list shows it again."""
    return Json(await memory.forget(whose, id_))


async def associate_memories(
    memory: Memory, wanted: Annotated[wire.AssociateBody, Depends(body_of(wire.AssociateBody))]
) -> Response:
    """Associate two memories; the same pair and relation again replaces the weight."""
    return Json(await memory.associate(wanted))


async def get_memory_graph(request: Request, memory: Memory) -> Response:
    """Show the memories around one, or the best connected ones."""
    return Json(await memory.graph(query_of(request.scope["query_string"], wire.LookAround)))


async def undo_memories(
    memory: Memory, wanted: Annotated[wire.UndoBody, Depends(body_of(wire.UndoBody))]
) -> Response:
    """Revert a source and everything that was derived from it."""
    return Json(await memory.undo(wanted))


async def get_memory_stats(memory: Memory, whose: Whose) -> Response:
    """Tell how much there is, what the indexes are made of, and how far a rebuild is."""
    return Json(await memory.stats(whose))


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
