"""Cost: what calls of models came to, by day, agent, cause, tier."""

from __future__ import annotations

import asyncio
from typing import Any, Final, get_args

from ...http.problem import Problem
from ...insight.budget import BudgetView
from ...work.cost import By, Costs
from ..second_thoughts import with_undo
from ..shapes.lists.leaf import leaf_of
from ..visit import Visit

LINES_MAX: Final = 100
DIVIDED: Final[tuple[str, ...]] = get_args(By)


async def act(visit: Visit) -> str:
    """Raise the reader's own limit of today, or take that back. Raises: Problem, 409: it isn't
    higher than that."""
    times = visit.number("times")
    before = (await visit.api.get(BudgetView, "/api/budget")).times_raised
    is_undo = visit.form.get("do") == "lower"
    if is_undo and times >= before:  # a link could name any number
        raise Problem(409, "that was taken back already", field="times")
    await visit.api.send("PUT", "/api/budget/raise", {"times": times})
    return with_undo("/cost", "" if is_undo else f"cap/{before}")


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
    leaf = leaf_of(visit.query, "after", LINES_MAX, ("days", *(f"by_{one}" for one in DIVIDED)))
    return {
        "lines": leaf.part(lines),
        "count": len(lines),
        "total_micro_usd": sum(one.micro_usd for one in lines),
        "total_calls": sum(one.calls for one in lines),
        "costs": costs,
        "budget": budget,
        "by": by,
        "divided": DIVIDED,
        "days": days,
    }
