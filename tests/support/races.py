"""Somebody else's write, exactly between the read and the write of whoever is tested."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from vigil.bus.bus import Ack, Bus


def overtake(
    monkeypatch: pytest.MonkeyPatch, bus: Bus, other: Callable[[], Awaitable[object]]
) -> None:
    """Have `other` done once, before what is published next over that bus."""
    publish = bus.publish

    async def overtaken(*args: Any, **given: Any) -> Ack:
        monkeypatch.setattr(bus, "publish", publish)
        await other()
        return await publish(*args, **given)

    monkeypatch.setattr(bus, "publish", overtaken)
