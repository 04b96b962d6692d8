"""A session's timeline: every record, below what caused it."""

from __future__ import annotations

from typing import Any, Final

from ....http.wire import Timeline
from ...shapes.tree import causes_of
from ...visit import Visit

SHOWN_MAX: Final = 100


async def show(visit: Visit) -> dict[str, Any]:
    key = visit.named("key")
    path = f"/api/sessions/{key}/timeline"
    after = visit.query.get("after", "0")
    found = await visit.api.get(Timeline, path, after=after, limit=SHOWN_MAX)
    names = await visit.titles([key])
    return {
        "key": key,
        "names": names,
        "causes": causes_of(found.records),
        "next_after": found.next_after,
    }
