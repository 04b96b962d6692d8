"""What channels know of a person: their addresses, and the browsers that are notified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import pairs
from .push import subscriptions

if TYPE_CHECKING:
    from ..bus.bus import Bus


async def forget(bus: Bus, user: str) -> None:
    """Forget all of it. Raises: Unavailable."""
    await pairs.forget(bus, user)
    await subscriptions.forget(bus, user)
