"""The times after which others take over from who was killed: a lease's, and the broker's patience.

Tests that kill wait for little else. Most halve them, here and in the processes that they start;
`tests/chaos/test_crash_points.py`, `test_replicas.py` and the long form keep what is used.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from msgspec.structs import force_setattr

from tests.support import warm
from vigil import topology


def scale(factor: float) -> None:
    """Scale them in this process; what was imported before keeps the numbers it has."""
    topology.LEASE_TTL_S *= factor  # type: ignore[misc, assignment]
    topology.LEASE_RENEW_S *= factor  # type: ignore[misc, assignment]
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
    warm.begin()
    try:
        yield
    finally:
        warm.has_halved_times = False
        scale(2)
