"""One prompt: its parts by tokens, and the rows of the history that the model was shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ....insight.calls import ModelCallDetail
from ....insight.shown import ShownRow
from ...text import SHORT, bytes_of
from ...visit import Visit

ROOM: Final = 60_000
"""Bytes of all rows of a page that are whole, the newest first; of others their beginning."""


async def show(visit: Visit) -> dict[str, Any]:
    path = f"/api/sessions/{visit.named('key')}/calls/{visit.named('seq')}"
    detail = await visit.api.get(ModelCallDetail, path)
    return {"detail": detail, "seq": visit.named("seq"), "clips": clips_of(detail.rows)}


def clips_of(rows: Sequence[ShownRow]) -> set[int]:
    """Return the places of the rows whose beginning alone is shown."""
    clips, left = set(), ROOM
    for number in reversed(range(len(rows))):
        size = bytes_of(rows[number].text)
        if size <= left:
            left -= size
        elif len(rows[number].text) > SHORT:
            clips.add(number)
    return clips
