"""How long the rule takes to find the standing grant of a call, with 200 grants of one tool.

The last of them covers the call: each before it is looked at, and refused. No service is needed.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

from bench.numbers import percentile, report
from vigil.contracts import Argv, Grant
from vigil.grants.rule import Standing, Wanted, match
from vigil.subjects import SessionKey

GRANTS = 200
CALLS = 2_000
NOW = datetime(2026, 11, 23, tzinfo=UTC)


async def measure(_home: Path) -> None:
    """Report the median and the 99th percentile of one look."""
    standing = [
        Standing(
            grant=Grant(
                id=f"{number:032x}",
                name=f"g{number}",
                owner="ann",
                agent="vigil",
                tool="shell",
                constraints=(Argv(argv=("df", f"--block-size={number}"), more="operands"),),
                made_at=NOW,
            ),
            revision=number,
        )
        for number in range(GRANTS)
    ]
    wanted = Wanted(
        key=SessionKey("ann", "vigil", "t1"),
        tool="shell",
        risk="external",
        input={"command": f"df --block-size={GRANTS - 1} '/home/ann/a file' /tmp"},
        is_outside=False,
        now=NOW,
    )
    took_us = []
    for _ in range(CALLS):
        begun_ns = time.perf_counter_ns()
        found = match(standing, wanted)
        took_us.append((time.perf_counter_ns() - begun_ns) / 1000)
        assert found.standing is standing[-1]
    report("grant_match_us", percentile(took_us, 50), "us", p99=percentile(took_us, 99))
