"""Cost: what calls of models came to, by day, agent, cause, tier."""

from __future__ import annotations

import asyncio
from typing import Any, Final, get_args

from ...insight.budget import BudgetView
from ...work.cost import By, Costs
from ..visit import Visit

LINES_MAX: Final = 400
DIVIDED: Final[tuple[str, ...]] = get_args(By)


async def act(visit: Visit) -> str:
    """Raise the reader's own limit of today. Raises: Problem."""
    await visit.api.send("PUT", "/api/budget/raise", {"times": visit.number("times")})
    return "/cost"


async def show(visit: Visit) -> dict[str, Any]:
    by = [one for one in DIVIDED if f"by_{one}" in visit.query] or ["day"]
    days = visit.query.get("days", "7")
    costs, budget = await asyncio.gather(
        visit.api.get(Costs, "/api/cost", days=days, by=by),
        visit.api.get(BudgetView, "/api/budget"),
    )
    lines = costs.lines
    if by != ["day"]:  # by what for: the dearest first
        lines = tuple(sorted(lines, key=lambda one: -one.micro_usd))
    more = max(len(lines) - LINES_MAX, 0)
    return {
        "lines": lines[:LINES_MAX],
        "total_micro_usd": sum(one.micro_usd for one in lines),
        "total_calls": sum(one.calls for one in lines),
        "more": more,
        "costs": costs,
        "budget": budget,
        "by": by,
        "divided": DIVIDED,
        "days": days,
    }
