"""Memory: what an agent knows, searched or listed; a source undone with all that came of it."""

from __future__ import annotations

from typing import Any, Final

from vigil.memory.wire import MemoryPage

from ..second_thoughts import Confirmation
from ..visit import Visit

SHOWN_MAX: Final = 50
FIELDS: Final = ("q", "source", "as_of", "agentId", "after")


async def show(visit: Visit) -> dict[str, Any]:
    wanted = {name: visit.query.get(name, "").strip() for name in FIELDS}
    given = {name: value for name, value in wanted.items() if value}
    found = await visit.api.get(MemoryPage, "/api/memories", limit=SHOWN_MAX, **given)
    return {"found": found, "wanted": wanted}


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before a source is undone."""
    return Confirmation(
        title="Undo this source?",
        text=f"All that came of {visit.wanted('source')!r} is forgotten for good, and what was "
        "made of that.",
        yes="Undo it",
    )


async def act(visit: Visit) -> str:
    """Undo a source. Raises: Problem."""
    body = {"source": visit.wanted("source"), "agentId": visit.wanted("agentId")}
    await visit.api.send("POST", "/api/memories/undo", body)
    return "/memories"
