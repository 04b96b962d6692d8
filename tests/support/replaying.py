"""At the end of a story: every session's log folds again to the same turns (issue 15)."""

from __future__ import annotations

from services.cortex.replay.log import replay, sessions
from tests.support.stack import Stack


async def assert_replayed(stack: Stack) -> int:
    """Fold all sessions of the stack's broker again; return how many turns that were."""
    bus, config, count = await stack.bus("admin"), stack.settings.config, 0
    for key in await sessions(bus):
        found = await replay(bus, key, config)
        assert found.difference is None, f"{key}, turn at {found.seq}: {found.difference}"
        count += found.turns
    return count
