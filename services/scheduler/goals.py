"""GoalDeadlines of goals: what wasn't reached by then fails, paused or not (SPEC G-2).

Only the active scheduler moves one, by a compare-and-set on what it read; so a person who moved it
at the same moment was first, and a repeat changes nothing. Nothing here outlives the term.
"""

from __future__ import annotations

from typing import Final

import structlog

from vigil.board.kept import KeptBoard, Revision
from vigil.board.kinds.goal import GOALS
from vigil.bus.bus import Message
from vigil.contracts import Change
from vigil.contracts.board import BoardGoal
from vigil.errors import VigilError, WrongLastSequence
from vigil.goals import lifecycle
from vigil.runtime import Context
from vigil.subjects import ANYBODY, board_of

from .promotion import PauseSwitch

log = structlog.get_logger("vigil.scheduler")

STREAM: Final = "BOARD"
POLL_S: Final = 5.0
"""How late a goal fails, at most."""
WHY: Final = "its deadline passed"


class GoalDeadlines:
    """Fails goals, for one term."""

    def __init__(self, context: Context, pause: PauseSwitch) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._pause = pause
        self._board = KeptBoard(context.bus, GOALS)
        self._timed: dict[str, Revision[BoardGoal]] = {}
        """Those that may yet fail, by id."""

    async def run(self) -> None:
        """Follow the board, until cancelled. Raises: Unavailable, BusError."""
        follower = await self._bus.follow(STREAM, [board_of(ANYBODY, GOALS.name)], 0)
        try:
            while True:
                message = await follower.next_within(POLL_S)
                if message is not None:
                    self._take_in(message)
                if message is None or message.pending == 0:
                    await self._fail_over()
        finally:
            await follower.close()

    def _take_in(self, message: Message) -> None:
        """Know a goal as it is now; what can't be read has no deadline."""
        id_, found = message.subject.rpartition(".")[2], self._board.read(message)
        known = self._timed.get(id_)
        if known is not None and known.number >= message.seq:
            return
        self._timed.pop(id_, None)
        if found is not None and lifecycle.over_at(found.entity) is not None:
            self._timed[id_] = found

    async def _fail_over(self) -> None:
        """Fail what is over; what can't be stored is tried again at the next look."""
        now = self._clock.now()
        over = [one for one in self._timed.values() if lifecycle.is_over(one.entity, now)]
        try:
            for one in over:
                if self._pause.is_erasing(one.entity.owner):
                    continue
                failed = lifecycle.moved(one.entity, "failed", now)
                try:
                    await self._board.replace(
                        one.number, failed, Change(by="scheduler", why=WHY), now
                    )
                except WrongLastSequence:
                    log.info("moved before", action="scheduler.goal", goal=one.entity.id)
                del self._timed[one.entity.id]
        except VigilError as error:
            log.info("not now", action="scheduler.goal", error=str(error))
