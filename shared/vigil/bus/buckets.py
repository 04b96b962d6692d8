"""How the broker keeps buckets."""

from __future__ import annotations

from typing import Any

from ..topology import BUCKETS, SECOND_NS, Bucket
from .bus import Bus


async def create_bucket(bus: Bus, name: str, *, replicas: int) -> None:
    """Create a bucket of the topology again; harmless if it's there. Raises: BusError."""
    bucket = next(one for one in BUCKETS if one.name == name)
    config = bucket_config(bucket, replicas)
    await bus.api(f"STREAM.CREATE.{config['name']}", config)


def bucket_config(bucket: Bucket, replicas: int) -> dict[str, Any]:
    """Return the standard layout of a NATS key-value bucket (NATS ADR-8)."""
    return {
        "name": f"KV_{bucket.name}",
        "subjects": [f"$KV.{bucket.name}.>"],
        "retention": "limits",
        "storage": bucket.storage,
        "discard": "new",
        "max_age": int(bucket.ttl_s * SECOND_NS),
        "max_msgs": -1,
        "max_bytes": -1,
        "max_msgs_per_subject": 1,
        "max_consumers": 1000,
        "allow_rollup_hdrs": True,
        # The state of a lease is read from the leader (ARCHITECTURE 3).
        "allow_direct": False,
        "duplicate_window": int(min(bucket.ttl_s or 120, 120) * SECOND_NS),
        "num_replicas": replicas,
        "allow_atomic": bucket.has_batches,
        "allow_msg_ttl": bucket.has_batches,
    }
