"""Show one memory."""

from __future__ import annotations

from typing import Annotated, Final

from ...contracts import MemoryLink
from ..operation import McpTool, Operation, Route
from ..questions import Id, MemoryView, Question, Reply, described
from ..view import picked
from ..wire import MemoryDetail


class Get(Question, frozen=True, kw_only=True):
    """Show one memory."""

    id: Annotated[Id, described("Of a memory: 32 hex digits, as recalled.")]


class Got(Reply, frozen=True, kw_only=True):
    """One memory, with its associations."""

    memory: MemoryView
    edges: tuple[MemoryLink, ...] = ()


OPERATION: Final = Operation(
    name="get",
    question=Get,
    reply=Got,
    is_reading=True,
    shown=MemoryDetail,
    route=Route(
        name="get_memory",
        text="Show one memory: what it was made of, what became of it, its associations.",
        method="GET",
        path="/api/memories/{id}",
        errors=(404,),
    ),
    mcp=McpTool(
        name="memory_get",
        title="Show a memory",
        text="Show one memory: where it comes from, what became of it, its associations.",
        picks=picked("id"),
        is_reading=True,
    ),
)
