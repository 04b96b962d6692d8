"""The times after which others take over from who was killed: a lease's, and the broker's patience.

Tests that kill wait for little else. Most halve them, here and in the processes that they start;
`tests/chaos/test_crash_points.py`, `test_replicas.py` and the long form keep what is used.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Final

from msgspec.structs import force_setattr

from tests.support import warm
from vigil import topology

_TIMES: Final = frozenset(
    {
        "LEASE_TTL_S", "LEASE_RENEW_S", "TTL_S", "RENEW_S", "RENEW_TIMEOUT_S", "JUDGE_AFTER_S",
        "GROUPED_S",
    }
)  # fmt: skip
"""A lease's times, by the names that modules know; how long requests wait for each other."""


def scale(factor: float) -> None:
    """Scale them in this process, in whatever module has imported them."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("vigil.", "services.")):
            known = vars(module)
            known.update({time: known[time] * factor for time in _TIMES & known.keys()})
    for consumer in topology.CONSUMERS:
        force_setattr(consumer, "ack_wait_s", consumer.ack_wait_s * factor)
    for bucket in topology.BUCKETS:
        if bucket.name == "LEASES":
            force_setattr(bucket, "ttl_s", bucket.ttl_s * factor)


@contextlib.contextmanager
def halved() -> Iterator[None]:
    """Halve them for brokers provisioned, and for services started as processes, meanwhile."""
    if not warm.IS_OFFERED:
        yield
        return
    scale(0.5)
    warm.has_halved_times = True
    try:
        yield
    finally:
        warm.has_halved_times = False
        scale(2)
