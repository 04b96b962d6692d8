"""At the end of a story: every session's log folds again to the same turns (issue 15)."""

from __future__ import annotations

from services.cortex.replay.log import replay, sessions
from vigil.bus.bus import Bus
from vigil.settings.config import Config


async def assert_replayed(bus: Bus, config: Config) -> int:
    """Fold all sessions of the broker again; return how many turns that were."""
    count = 0
    for key in await sessions(bus):
        found = await replay(bus, key, config)
        assert found.difference is None, f"{key}, turn at {found.seq}: {found.difference}"
        count += found.turns
    return count
