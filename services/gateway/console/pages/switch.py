"""The big switch on every page: nothing unasked, for oneself or for everybody."""

from __future__ import annotations

from ..visit import Visit


async def act(visit: Visit) -> None:
    """Set a switch. Raises: Problem, 403: that for everybody is an admin's."""
    is_on = visit.wanted("to") == "on"
    if visit.wanted("whose") == "all":
        await visit.api.send("PUT" if is_on else "DELETE", "/api/pause")
    else:
        await visit.api.send("PATCH", "/api/person", {"pause": "on" if is_on else ""})
