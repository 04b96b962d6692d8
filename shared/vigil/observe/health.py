"""How a replica is: asked of all at once on the bus, answered by each for itself."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

HEALTH: Final = "rpc.health"
BROKER: Final = "broker"
"""The name under which the watch over the embedded broker tells how that is; no service."""


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What a replica answers to `rpc.health`."""

    service: str
    instance: str
    pid: int
    version: str
    ready: bool
    problems: tuple[str, ...] = ()
    """Why it isn't ready."""
    warnings: tuple[str, ...] = ()
    """What it can't do although it is ready, and why."""
    facts: dict[str, Any] = {}
    """What a person wants to know about it: the gateway's port, the cortex's model."""


class Alive(msgspec.Struct, frozen=True, kw_only=True):
    """The process answers."""

    status: Literal["alive"]
