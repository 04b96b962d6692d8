"""How fast logs are folded again, by one process that reads them from a broker beside it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from bench import system
from bench.numbers import report
from services.cortex.replay.log import replay, sessions
from vigil.settings import config

SESSIONS: Final = 20
MESSAGES: Final = 50


async def measure(home: Path) -> None:
    """Report turns a second, of conversations that differ from the log in nothing."""
    async with system.running(home) as running:
        await running.talk(SESSIONS, MESSAGES, "replay")
        settings = config.load({"VIGIL_HOME": str(home), "VIGIL_MODEL": "rehearsal"})
        bus, turns = await running.admin(), 0
        begun = time.perf_counter()
        for key in await sessions(bus):
            found = await replay(bus, key, settings.config)
            if found.difference is not None or found.skipped:
                raise RuntimeError(f"{key} does not fold again: {found}")
            turns += found.turns
        lasted_s = time.perf_counter() - begun
        await bus.close()
    report("replay_turns_per_s", turns / lasted_s, "1/s", turns=turns)
