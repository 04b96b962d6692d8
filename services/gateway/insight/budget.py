"""GET /api/budget: what a person's account of the UTC day holds, and the caps (SPEC C-9)."""

from __future__ import annotations

import math
from datetime import UTC
from typing import Final

import msgspec
from fastapi import Response

from vigil.bus.kv import KeyValue
from vigil.contracts.costs import Account
from vigil.settings.models.caps import Caps
from vigil.subjects import token_of

from ..endpoint import Endpoint
from ..http.routes import Caller, Json, Shared
from ..http.wire import Answer

MICRO: Final = 1_000_000


class BudgetView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """The caller's own account of today, in tokens and millionths of a dollar. What is reserved is
    set aside for calls that go on. At a cap no model is asked until 00:00 UTC."""

    day: str
    tokens_used: int
    tokens_reserved: int
    tokens_max: int
    micro_usd_used: int
    micro_usd_reserved: int
    micro_usd_max: int | None
    """null: there is no cap in money."""
    caps: dict[str, float | int | None]
    """As configured, by the name of the setting; null: not set."""


async def get_budget(edge: Shared, caller: Caller) -> Response:
    """Tell how much of today's budget is left for you, and the caps as configured."""
    day = edge.clock.now().astimezone(UTC).date().isoformat()
    found = await KeyValue(edge.bus, "BUDGETS").get(f"{day}.owner.{token_of(caller.user)}")
    account = Account() if found is None else msgspec.json.decode(found.value, type=Account)
    caps = edge.context.settings.config.budget
    tokens_max, usd_max = limits_of(caps)
    return Json(
        BudgetView(
            day=day,
            tokens_used=account.used,
            tokens_reserved=account.reserved,
            tokens_max=tokens_max,
            micro_usd_used=account.used_micro_usd,
            micro_usd_reserved=account.reserved_micro_usd,
            micro_usd_max=None if math.isinf(usd_max) else int(usd_max * MICRO),
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


ENDPOINTS: Final = (Endpoint("GET", "/api/budget", get_budget, {200: BudgetView}, (503,)),)
