"""Browsers: where one is signed in, each to be signed out."""

from __future__ import annotations

from typing import Any

from ..endpoint import BrowserList
from ..visit import Visit, segment_of


async def show(visit: Visit) -> dict[str, Any]:
    found = await visit.api.get(BrowserList, "/api/console/browsers")
    return {"browsers": found.browsers, "own": visit.browser}


async def act(visit: Visit) -> str:
    """Sign one out."""
    id_ = segment_of(visit.wanted("id"))
    await visit.api.send("DELETE", f"/api/console/browsers/{id_}")
    return "/browsers"
