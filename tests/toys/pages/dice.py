"""A page of the console: what it shows, and what its form does; its template is `dice.html`."""

from __future__ import annotations

from typing import Any

from services.gateway.console.visit import Visit
from tests.toys.routes.dice import Dice


async def show(visit: Visit) -> dict[str, Any]:
    return {"die": await visit.api.get(Dice, "/api/dice")}


async def act(visit: Visit) -> dict[str, Any]:
    """Take another. Raises: Problem, 422: it has too many sides."""
    taken = await visit.api.send("POST", "/api/dice", {"sides": visit.number("sides")})
    return {"taken": taken["sides"]}
