"""Prompts: what models were asked in a session, what filled each prompt, what it cost, and why."""

from __future__ import annotations

from typing import Any

from ....insight.calls import ModelCallList
from ...visit import Visit, segment_of


async def show(visit: Visit) -> dict[str, Any]:
    key = visit.query.get("session", "").strip() or str(visit.home)
    path = f"/api/sessions/{segment_of(key)}/calls"
    found = await visit.api.get(ModelCallList, path, before=visit.query.get("before"))
    names = await visit.titles([key])
    return {"key": key, "names": names, "calls": found.calls, "next_before": found.next_before}
