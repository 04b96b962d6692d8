"""What the door to a paid call costs it: setting its worst case aside, and settling it."""

from __future__ import annotations

import time
from datetime import date
from pathlib import Path
from typing import Final

from bench.numbers import percentile, report
from services.cortex.thought.budget import CallBudget, Estimate
from services.cortex.thought.ledger import PaidCall
from tests.support.stack import running_stack
from vigil.clock import SystemClock, new_id
from vigil.contracts import Usage
from vigil.settings.models.caps import Caps
from vigil.settings.models.prices import PriceBand

CALLS: Final = 200
PRICES: Final = (PriceBand(since=date(2026, 1, 1), input=3, output=15),)


async def measure(home: Path) -> None:
    """Report the median of both exchanges together, with nobody else writing."""
    call = PaidCall(user="ann", agent="vigil", cause="t1", model="m")
    async with running_stack(home, services=()) as stack:
        budget = CallBudget(
            await stack.bus("cortex"),
            Caps(daily_tokens=10**9),
            SystemClock(),
            new_id=new_id,
            prices_of=lambda _: PRICES,
        )
        taken_us = []
        for _ in range(CALLS):
            begun = time.perf_counter()
            held = await budget.reserve(call, Estimate(input_tokens=1000, output_tokens=1000))
            await budget.settle(held, Usage(model="m", input_tokens=900, output_tokens=100))
            taken_us.append((time.perf_counter() - begun) * 1e6)
    p99 = round(percentile(taken_us, 99))
    report("budget_overhead_us", round(percentile(taken_us, 50)), "us", p99=p99)
