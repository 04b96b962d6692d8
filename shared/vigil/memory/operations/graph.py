"""Show how memories are associated."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from ...contracts import MemoryLink
from ..operation import McpTool, Operation, Route
from ..questions import Id, MemoryView, Question, Reply, described
from ..view import Pick, picked
from ..wire import MemoryGraph

NODES_MAX: Final = 300
"""More dots nobody tells apart on a page."""


class GetGraph(Question, frozen=True, kw_only=True):
    """The memories around one, or the best connected ones."""

    id: Annotated[
        Id | None,
        described("The memory to begin with. Leave it out for the best connected."),
    ] = None
    depth: Annotated[int, msgspec.Meta(ge=1, le=3), described("How many steps away.")] = 1
    limit: Annotated[int, msgspec.Meta(ge=1, le=NODES_MAX), described("How many at most.")] = 100


class Graph(Reply, frozen=True, kw_only=True):
    """Memories, and the associations between them."""

    nodes: tuple[MemoryView, ...]
    edges: tuple[MemoryLink, ...]


OPERATION: Final = Operation(
    name="graph",
    question=GetGraph,
    reply=Graph,
    is_reading=True,
    shown=MemoryGraph,
    route=Route(
        name="get_memory_graph",
        text="Show the memories around one, or the best connected ones.",
        method="GET",
        path="/api/memories/graph",
        errors=(404,),
    ),
    mcp=McpTool(
        name="memory_graph",
        title="Show associations",
        text="Show the memories that are associated with one, and how; or the hubs of all.",
        picks=picked("id", "depth", limit=Pick(default=50)),
        is_reading=True,
    ),
)
