"""One prompt: its parts by tokens, and the rows of the history that the model was shown."""

from __future__ import annotations

from typing import Any

from ....insight.calls import ModelCallDetail
from ...visit import Visit


async def show(visit: Visit) -> dict[str, Any]:
    path = f"/api/sessions/{visit.named('key')}/calls/{visit.named('seq')}"
    return {"detail": await visit.api.get(ModelCallDetail, path)}
