"""The limit in money that is proposed at the first start, where prices are known. Pure.

A limit in tokens says little to who pays. What is proposed is what a heavy day of one person costs,
for the whole instance: so that it isn't met on a day of work, and is on one that ran away.
"""

from __future__ import annotations

import math
from datetime import date
from typing import TYPE_CHECKING, Final

from . import DEFAULT_MODEL, REHEARSAL, names
from .prices import worst_cost_of

if TYPE_CHECKING:
    from ..config import Config

HEAVY_DAY: Final = (7_600_000, 400_000)
"""Tokens sent and received: five times the 175 messages that took a million, and a look and a cycle
every half hour. No cache is reckoned with."""
MICRO: Final = 1_000_000


def proposed(config: Config, day: date) -> int | None:
    """Return `budget.daily_usd` in whole dollars, by the dearest model of those in use.

    None: some limit in money is set, or one of the models has no price: with a limit in money it
    would not be asked.
    """
    caps = config.budget
    per = (caps.daily_usd_per_user, caps.daily_usd_per_agent, caps.daily_usd_per_session)
    if caps.daily_usd != math.inf or any(one is not None for one in per):
        return None
    used = {name or DEFAULT_MODEL for name in names(config).values()} - {REHEARSAL}
    costs = [worst_cost_of(config.prices_of(name), *HEAVY_DAY, day) for name in sorted(used)]
    known = [cost for cost in costs if cost is not None]
    if not known or len(known) < len(costs):
        return None
    whole = max(known) / MICRO / caps.share_per_user
    return max(math.ceil(whole), 1) if whole > 0 else None
