"""Settings: what holds for the reader: zone, language, quiet hours, channel, digest."""

from __future__ import annotations

from typing import Any, Final

from ..visit import Visit

FIELDS: Final = ("timezone", "language", "quiet_hours", "channel", "digest_at")


async def show(visit: Visit) -> dict[str, Any]:
    held = visit.person
    return {"values": {name: getattr(held, name) for name in FIELDS}, "own": held.own}


async def act(visit: Visit) -> str:
    """Set what differs from what was shown. Raises: Problem, 412: it was changed since."""
    await visit.begin()
    given = {name: visit.wanted(name).strip() for name in FIELDS}
    change = {name: one for name, one in given.items() if one != getattr(visit.person, name)}
    revision = visit.number("revision")
    if change:
        await visit.api.send("PATCH", "/api/person", change, revision=revision)
    return "/settings"
