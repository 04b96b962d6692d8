"""Facts that runs of the timetable told, taken to where they are kept (FLOW F-9, F-10).

Each value is fitted to its row's shapes once more here, and what may be told a day is counted, so
what stands on the board doesn't hang on what a session wrote. The revision names the effect: a
repeat finds it in the history.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import structlog

from vigil import crash
from vigil.board.kept import FACTS, KeptBoard
from vigil.contracts import Change, SlotRun, TellParent
from vigil.contracts.board import SourceFacts
from vigil.errors import Unavailable, WrongLastSequence
from vigil.facts.taken import taken
from vigil.runtime import Context
from vigil.subjects import SessionKey

from .changes import made_by

log = structlog.get_logger("vigil.executor")

TRIES_MAX: Final = 20
WHY: Final = "a run of its row ended"


class FactDesk:
    """Takes them."""

    def __init__(self, context: Context) -> None:
        self._clock = context.clock
        self._board = KeptBoard(context.bus, FACTS)
        self._bits_max = context.settings.config.cortex.fact_bits_per_day

    async def take(
        self, key: SessionKey, effect: TellParent, slot: SlotRun, begun_at: datetime
    ) -> SourceFacts | None:
        """Take what a run told, and return what is known by its row then; None: it names no facts.
        May be repeated.

        Args:
            begun_at: when the run was.

        Raises:
            Unavailable: try again later.
        """
        if not slot.facts:
            return None
        for _ in range(TRIES_MAX):
            found = await self._board.find([key.scope], slot.row)
            is_later = found is not None and found.at >= begun_at
            before = await made_by(self._board, effect.id, found) if found and is_later else None
            if before is not None:
                known: SourceFacts = before.entity
                return known
            source = SourceFacts(id=slot.row, owner=key.user, agent=key.agent)
            now = self._clock.now()
            after = taken(
                source if found is None else found.entity,
                slot.facts,
                effect.payload.facts,
                now,
                bits_max=self._bits_max,
                cause=effect.id,
                session=str(key),
            )
            number = 0 if found is None else found.number
            change = Change(by=key.agent, why=WHY, cause=effect.id)
            try:
                await self._board.replace(number, after, change, now)
            except WrongLastSequence:
                continue
            crash.point("executor.facts.taken")
            log.info("facts taken", action="executor.facts", session=str(key), row=slot.row)
            return after
        raise Unavailable(f"{slot.row}: others write its facts all the time")
