"""/api/budget: what a person's account of their day holds, and the caps, which may be raised for it
(SPEC C-9)."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Annotated, Final

import msgspec
import structlog
from fastapi import Depends, Response

from vigil.bus.kv import KeyValue
from vigil.contracts.costs import Account
from vigil.errors import InvalidInput
from vigil.settings import switches
from vigil.settings.models import raises
from vigil.settings.models.caps import Caps
from vigil.settings.models.raises import Raise
from vigil.zones.day import Day

from ..callers import Caller, Shared, body_of
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.problem import Problem, erasing
from ..http.wire import Answer, RequestBody
from ..known_agents import check_agent
from ..state.edge import Edge

log = structlog.get_logger("vigil.gateway")

MICRO: Final = 1_000_000


class BudgetView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """The caller's own account of today, in tokens and millionths of a dollar. What is reserved is
    set aside for calls that go on. At a cap no model is asked until `resets_at`."""

    day: str
    """A date of your time zone, as your clock is set."""
    resets_at: datetime
    """When the next one begins."""
    tokens_used: int
    tokens_reserved: int
    tokens_max: int
    micro_usd_used: int
    micro_usd_reserved: int
    micro_usd_max: int | None
    """null: there is no cap in money."""
    times_raised: int
    """So often what your limit is, was added to it today, as far as `budget.raise_max` lets it be:
    by "more", or `vigil budget raise`."""
    times_next: int | None
    """What the next raise makes of that; null: `budget.raise_max` is reached."""
    caps: dict[str, float | int | None]
    """As configured, by the name of the setting; null: not set."""


class RaiseBody(RequestBody, frozen=True, kw_only=True):
    """A limit that is to be raised for today: yours, unless an admin names another."""

    times: Annotated[int, msgspec.Meta(ge=0, le=raises.TIMES_MAX)]
    """So often what it is, is added to it, in all; 0: it's as configured."""
    agent: str = ""
    """Whose limit it is; empty: none's."""
    is_for_all: bool = False
    """Whether it is the instance's."""


async def raise_budget(
    edge: Shared, caller: Caller, wanted: Annotated[RaiseBody, Depends(body_of(RaiseBody))]
) -> Response:
    """Raise a limit for today, up to `budget.raise_max`: your own, or as an admin an agent's or the
    instance's. It holds at once."""
    if edge.switches.is_erasing(caller.user):
        raise erasing()
    if (wanted.agent or wanted.is_for_all) and not caller.is_admin:
        raise Problem(403, "this needs an admin token")
    if wanted.agent and wanted.is_for_all:
        raise InvalidInput("agent", "is one, and is_for_all raises the limit of the instance")
    account = raises.of_person(caller.user)
    if wanted.is_for_all:
        account = raises.INSTANCE
    elif wanted.agent:
        account = raises.of_agent(await check_agent(edge, caller, wanted.agent, "agent"))
    now, day = edge.clock.now(), day_of(edge, caller.user)
    if account != raises.of_person(caller.user):
        day = Day.at(now)
    # What does nothing isn't kept: it would, once `budget.raise_max` is another.
    times = raises.counted(wanted.times, edge.context.settings.config.budget.raise_max)
    made = Raise(day=str(day), times=times, at=now, by=caller.user)
    await switches.put_raise(edge.bus, account, made)
    log.info("budget raised", action="gateway.raised", by=caller.user, times=times)
    return await get_budget(edge, caller)


def day_of(edge: Edge, user: str) -> Day:
    """Return what a person's day is now, as their clock is set."""
    return Day.at(edge.clock.now(), edge.zone_of(user))


async def get_budget(edge: Shared, caller: Caller) -> Response:
    """Tell how much of today's budget is left for you, and the caps as configured."""
    today, name = day_of(edge, caller.user), raises.of_person(caller.user)
    day = str(today)
    found = await KeyValue(edge.bus, "BUDGETS").get(f"{day}.{name}")
    account = Account() if found is None else msgspec.json.decode(found.value, type=Account)
    caps = edge.context.settings.config.budget
    times = await switches.find_raise(edge.bus, name, day)
    by = raises.factor(times, caps.raise_max)
    tokens_max, usd_max = (limit * by for limit in limits_of(caps))
    return Json(
        BudgetView(
            day=day,
            resets_at=today.ends_at,
            tokens_used=account.used,
            tokens_reserved=account.reserved,
            tokens_max=int(tokens_max),
            micro_usd_used=account.used_micro_usd,
            micro_usd_reserved=account.reserved_micro_usd,
            micro_usd_max=None if math.isinf(usd_max) else int(usd_max * MICRO),
            times_raised=raises.counted(times, caps.raise_max),
            times_next=raises.next_times(times, caps.raise_max),
            caps={name: _plain(value) for name, value in msgspec.structs.asdict(caps).items()},
        )
    )


def limits_of(caps: Caps) -> tuple[int, float]:
    """Return what one person may take a day: tokens, and dollars; the lesser of share and amount.

    >>> limits_of(Caps(daily_tokens=1000, daily_usd=4.0, daily_usd_per_user=1.5))
    (500, 1.5)
    """
    tokens = int(caps.daily_tokens * caps.share_per_user)
    usd = caps.daily_usd * caps.share_per_user
    if caps.daily_tokens_per_user is not None:
        tokens = min(tokens, caps.daily_tokens_per_user)
    if caps.daily_usd_per_user is not None:
        usd = min(usd, caps.daily_usd_per_user)
    return tokens, usd


def _plain(value: float | int | None) -> float | int | None:
    """Infinity isn't JSON: it is no cap."""
    return None if isinstance(value, float) and math.isinf(value) else value


ENDPOINTS: Final = (
    Endpoint("GET", "/api/budget", get_budget, {200: BudgetView}, (503,)),
    Endpoint(
        "PUT",
        "/api/budget/raise",
        raise_budget,
        {200: BudgetView},
        (403, 413, 422, 503),
        RaiseBody,
    ),
)
