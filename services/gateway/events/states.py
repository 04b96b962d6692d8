"""How the channels are that replicas listen to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vigil.observe.health import Health


def states_in(replicas: Iterable[Health]) -> Mapping[str, Mapping[str, Any]]:
    """Return how each channel is that a replica listens to."""
    found: dict[str, Mapping[str, Any]] = {}
    for replica in replicas:
        found |= replica.facts.get("hears", {})
    return found
