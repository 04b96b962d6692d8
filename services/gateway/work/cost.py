"""/api/cost: what calls of models came to, divided by day, agent, person and more (LOOPS L-21).

One sees one's own, an admin everybody's.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, timedelta
from typing import Annotated, Final, Literal, get_args

import msgspec
from fastapi import Query, Response

from vigil.contracts.costs import COSTS, Account, DayOfCosts
from vigil.subjects import token_of

from ..http.routes import Caller, Json, Shared
from ..http.wire import Answer

DAYS_MAX: Final = 400
By = Literal["day", "agent", "person", "cause", "tier", "model"]
_SUMS: Final = (
    "calls",
    "calls_unpriced",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "micro_usd",
)


class CostLine(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """Sums of settled calls; what they are not divided by is empty."""

    day: str
    agent: str
    person: str
    cause: str
    """The thread of the session; `other`: of those beyond a hundred a day."""
    tier: str
    model: str
    calls: int
    calls_unpriced: int
    """Those of them without a price; they are not in `micro_usd`."""
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    micro_usd: int
    cached_share: float
    """Of the tokens that were sent, those read from the provider's cache: 0 to 1."""


class Costs(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """What calls came to, and what of three days is set aside and not settled."""

    lines: tuple[CostLine, ...]
    reserved_tokens: int
    reserved_micro_usd: int


async def get_cost(
    edge: Shared,
    caller: Caller,
    days: Annotated[int, Query(ge=1, le=DAYS_MAX, description="UTC days up to today")] = 7,
    by: Annotated[list[By] | None, Query(description="One line for each of these")] = None,
) -> Response:
    """Tell what calls of models came to: one's own, or for an admin everybody's."""
    whose = "*" if caller.is_admin else token_of(caller.user)
    today = edge.clock.now().astimezone(UTC).date()
    first = (today - timedelta(days=days - 1)).isoformat()
    stored = await edge.bus.read("KV_BUDGETS", [f"$KV.BUDGETS.*.{COSTS}.{whose}"])
    found = [
        (day, msgspec.json.decode(one.data, type=DayOfCosts))
        for one in stored
        if one.data and (day := one.subject.split(".")[2]) >= first
    ]
    accounts = [
        msgspec.json.decode(one.data, type=Account)
        for one in await edge.bus.read("KV_BUDGETS", [f"$KV.BUDGETS.*.owner.{whose}"])
        if one.data and one.subject.split(".")[2] >= first
    ]
    return Json(
        Costs(
            lines=lines_of(found, by or ["day"]),
            reserved_tokens=sum(one.reserved for one in accounts),
            reserved_micro_usd=sum(one.reserved_micro_usd for one in accounts),
        )
    )


def lines_of(found: Iterable[tuple[str, DayOfCosts]], by: Iterable[By]) -> tuple[CostLine, ...]:
    """Return the sums, in the order of what they are divided by.

    >>> from vigil.contracts.costs import CostRow
    >>> row = CostRow(agent="a", cause="t", tier="main", model="m", calls=2, micro_usd=7)
    >>> found = [("2026-11-22", DayOfCosts(user="ann", rows=(row, row)))]
    >>> [(line.person, line.day, line.micro_usd) for line in lines_of(found, ["person"])]
    [('ann', '', 14)]
    """
    wanted = set(by)
    sums: dict[tuple[str, ...], list[int]] = {}
    for day, costs in found:
        for row in costs.rows:
            whole = (day, row.agent, costs.user, row.cause, row.tier, row.model)
            name = tuple(
                part if one in wanted else "" for one, part in zip(get_args(By), whole, strict=True)
            )
            total = sums.setdefault(name, [0] * len(_SUMS))
            sums[name] = [have + getattr(row, one) for have, one in zip(total, _SUMS, strict=True)]
    return tuple(_line(name, sums[name]) for name in sorted(sums))


def _line(name: tuple[str, ...], sums: list[int]) -> CostLine:
    named = dict(zip(get_args(By), name, strict=True))
    counts = dict(zip(_SUMS, sums, strict=True))
    sent = counts["input_tokens"] + counts["cache_read_tokens"] + counts["cache_write_tokens"]
    share = counts["cache_read_tokens"] / sent if sent else 0.0
    return CostLine(**named, **counts, cached_share=round(share, 4))  # type: ignore[arg-type]
