"""One record of a session, exactly as it's stored: of a turn, also the state after it."""

from __future__ import annotations

from typing import Any, Final

from ....http.problem import Problem
from ....http.wire import Timeline
from ...text import weight
from ...visit import Visit

LONG: Final = 100_000
"""Bytes of a record that the page shows whole."""


async def show(visit: Visit) -> dict[str, Any]:
    key, seq = visit.named("key"), visit.named("seq")
    if not seq.isdecimal() or len(seq) > 16 or int(seq) < 1:
        raise Problem(404, "there is no such record")
    path = f"/api/sessions/{key}/timeline"
    found = await visit.api.get(Timeline, path, after=int(seq) - 1, limit=1)
    if not found.records or found.records[0].seq != int(seq):
        raise Problem(404, "there is no such record")
    return {
        "key": key,
        "names": await visit.titles([key]),
        "record": found.records[0],
        "is_long": weight(found.records[0].data) > LONG,
    }
