"""Why something was said, or wasn't: the whole chain of causes, from the log."""

from __future__ import annotations

from typing import Any

from ...why.answer import WhyAnswer
from ..visit import Visit


async def show(visit: Visit) -> dict[str, Any]:
    wanted = visit.query.get("id", "").strip()
    if not wanted:
        return {"wanted": "", "story": None}
    session = visit.query.get("session") or None
    story = await visit.api.get(WhyAnswer, f"/api/why/{wanted}", session=session)
    return {"wanted": wanted, "story": story}
