"""Every 30 s: which sessions of this replica don't move, and which fill their window (SPEC C-5).

A session that owes a step and commits nothing for longer than any call may take hangs, in whatever
it may be. Its circuit opens, so that what it does unasked isn't tried over and over, and it is
opened anew: its wake comes again, and the attempt counts (`Session._take_over`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import structlog

from vigil.circuits import SESSION, Circuits
from vigil.clock import Clock
from vigil.errors import VigilError
from vigil.subjects import SessionKey
from vigil.words.amounts import about

from .session import Session

log = structlog.get_logger("vigil.cortex")

ROUND_S = 30.0
STUCK_MIN_S = 300.0
GRACE_S: Final = 60.0
"""Beyond what a call of the model may take."""
NEAR: Final = 0.75
"""Of the context window: at 80 % the oldest part is summed up."""
SHOWN_MAX: Final = 20
FACT: Final = "sessions"


def stuck_after(timeout_s: float) -> float:
    """Return after how many seconds a session counts as stuck.

    >>> stuck_after(120.0), stuck_after(600.0)
    (300.0, 660.0)
    """
    return max(STUCK_MIN_S, timeout_s + GRACE_S)


class HealthRounds:
    """Looks after the sessions that are open in a replica.

    Args:
        sessions: gives those that are.
        reopen: has one opened anew.
        facts: of the replica's health; `FACT` of it says what was found.
    """

    def __init__(
        self,
        *,
        sessions: Callable[[], Mapping[SessionKey, Session]],
        reopen: Callable[[SessionKey], None],
        circuits: Circuits,
        clock: Clock,
        facts: dict[str, Any],
        stuck_s: float,
    ) -> None:
        self._sessions = sessions
        self._reopen = reopen
        self._circuits = circuits
        self._clock = clock
        self._facts = facts
        self._stuck_s = stuck_s

    async def run(self) -> None:
        """Make rounds until it's cancelled; none ends because of what it finds."""
        while True:
            await asyncio.sleep(ROUND_S)
            try:
                await self.make_round()
            except VigilError as error:
                log.info("round ended early", action="cortex.round", error=str(error))

    async def make_round(self) -> None:
        """Look once at each."""
        now_s = self._clock.monotonic()
        found = self._sessions()
        still = {key: one.progress.still_s(now_s) for key, one in found.items()}
        stuck = {key: still_s for key, still_s in still.items() if still_s > self._stuck_s}
        near = {key: one.progress.fill for key, one in found.items() if one.progress.fill >= NEAR}
        self._facts[FACT] = [
            *({"session_key": str(key), "stuck_s": round(s)} for key, s in _most(stuck)),
            *({"session_key": str(key), "fill": round(fill, 2)} for key, fill in _most(near)),
        ]
        for key, still_s in stuck.items():
            log.warning("stuck", action="cortex.stuck", session=str(key), still_s=round(still_s))
            await self._circuits.trip(f"{SESSION}{key}", f"nothing moved for {about(still_s)}")
            self._reopen(key)


def _most(found: Mapping[SessionKey, float]) -> list[tuple[SessionKey, float]]:
    return sorted(found.items(), key=lambda one: -one[1])[:SHOWN_MAX]
