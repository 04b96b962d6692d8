"""The graph of memories: how they are associated, the best connected in the middle."""

from __future__ import annotations

from typing import Any, Final

from vigil.memory.wire import MemoryGraph

from ..shapes.graph import placed
from ..visit import Visit

SHOWN_MAX: Final = 300
STEPS: Final = 2
"""From a memory that is named, so far."""


async def show(visit: Visit) -> dict[str, Any]:
    around, agent = visit.query.get("id") or None, visit.query.get("agentId") or None
    found = await visit.api.get(
        MemoryGraph,
        "/api/memories/graph",
        id=around,
        depth=STEPS if around else None,
        agentId=agent,
        limit=SHOWN_MAX,
    )
    nodes, lines, side = placed(found.nodes, found.edges)
    return {
        "agent": found.agent_id,
        "nodes": nodes,
        "lines": lines,
        "size": side,
        "around": around or "",
        "limit": SHOWN_MAX,
    }
