"""Tools: what agents can be offered, by source, with the risk; and what is held back, and why."""

from __future__ import annotations

from typing import Any

from ...work.tools import ToolList
from ..visit import Visit


async def show(visit: Visit) -> dict[str, Any]:
    return {"sources": (await visit.api.get(ToolList, "/api/tools")).sources}
