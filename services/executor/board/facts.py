"""Facts that runs of the timetable and looks of watchers told, taken to where they are kept (FLOW
F-9, F-10).

Each value is fitted to its row's shapes once more here, and what may be told a day is counted, so
what stands on the board doesn't hang on what a session wrote. The revision names the effect: a
repeat finds it in the history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple

import structlog

from vigil import crash
from vigil.board.kept import FACTS, KeptBoard
from vigil.calendars import facts as calendars
from vigil.calendars.section import CalendarSection
from vigil.contracts import Change, SlotRun, TellParent
from vigil.contracts.board import BoardGoal, FactFill, FactShape, SourceFacts
from vigil.contracts.board.approval import short_name
from vigil.errors import Unavailable, WrongLastSequence
from vigil.facts import mailed
from vigil.facts.observed import Observation, facts_observed
from vigil.facts.shown import GOAL
from vigil.facts.taken import taken, with_looked
from vigil.runtime import Context
from vigil.subjects import SessionKey, token_of

from .made import made_by

log = structlog.get_logger("vigil.executor")

TRIES_MAX: Final = 20
WHY: Final = "a run of its row ended"
WHY_GOAL: Final = "it was looked how the goal stands"
WHY_COUNTED: Final = "its mailbox was looked at"
WHY_CALENDAR: Final = "its calendar was looked at"
WHY_PROBED: Final = "it was looked at what its row watches"


class _FactOrigin(NamedTuple):
    """Who tells facts of a row at one time."""

    cause: str
    shapes: Mapping[str, FactShape]
    others: Mapping[str, FactShape]
    """Of the row's those that are told at other times."""
    why: str
    session: str
    begun_at: datetime
    """Nothing of before was told by this."""
    is_event: bool = False
    """Whether what it doesn't tell stays as it was."""


def slot_of_goal(goal: BoardGoal) -> SlotRun:
    """Return a goal as a source of facts is told of, like the row of a run."""
    name = f"{GOAL}{short_name(goal.id, 'g')}"
    return SlotRun(row=goal.id, name=name, due_at=goal.created_at, timeout_s=0, news=goal.news)


class FactStore:
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
        origin = _FactOrigin(effect.id, slot.facts, slot.looked, WHY, str(key), begun_at)
        given, now = effect.payload.facts, self._clock.now()
        if key.kind == mailed.KIND:
            origin = origin._replace(is_event=True)
            return await self._take(
                key, slot, origin, lambda known: mailed.nearest(known, given, now)
            )
        return await self._take(key, slot, origin, lambda _: given)

    async def take_observed(
        self, key: SessionKey, slot: SlotRun, places: Mapping[str, str], observation: Observation
    ) -> SourceFacts | None:
        """Take what a look told; as `take`. A repeat of the same slot's look changes nothing.

        Args:
            key: of the run that it may lead to.
            places: where it finds each fact.
        """
        if not places:
            return None
        cause = token_of("look", slot.row, slot.due_at.isoformat())
        origin = _FactOrigin(cause, slot.looked, slot.facts, WHY_PROBED, "", slot.due_at)
        return await self._take(key, slot, origin, partial(facts_observed, places, observation))

    async def of_run(
        self, key: SessionKey, slot: SlotRun, known: SourceFacts | None
    ) -> FactFill | None:
        """Return what came of the facts that a row names, by a run and by the look that began it;
        None: nothing did.

        Args:
            known: as `take` returned it for the run.

        Raises:
            Unavailable: try again later.
        """
        if not slot.looked or slot.is_by_hand:
            return None if known is None else known.newest
        found = None if known is not None else await self._board.find([key.scope], slot.row)
        source = known if found is None else found.entity
        told = None if known is None else known.newest
        return with_looked(told, source, slot.looked, slot.due_at)

    async def take_counted(
        self, key: SessionKey, slot: SlotRun, cause: str, given: Mapping[str, object]
    ) -> SourceFacts:
        """Take what was counted without a model, beside what runs tell; as `take`."""
        origin = _FactOrigin(cause, slot.looked, slot.facts, WHY_COUNTED, "", slot.due_at)
        return await self._take(key, slot, origin, lambda _: given)

    async def take_goal(
        self, key: SessionKey, cause: str, goal: BoardGoal, given: Mapping[str, str]
    ) -> SourceFacts:
        """Take what a loop told of a goal, as it stands on the board; as `take`."""
        origin = _FactOrigin(cause, goal.facts, {}, WHY_GOAL, str(key), goal.created_at)
        return await self._take(key, slot_of_goal(goal), origin, lambda _: given)

    async def take_calendar(
        self,
        key: SessionKey,
        cause: str,
        name: str,
        section: CalendarSection,
        given: Mapping[str, object],
    ) -> SourceFacts:
        """Take what a calendar tells; as `take`. What it doesn't tell isn't known any more."""
        shapes = {one: shape for one, shape in calendars.SHAPES.items() if one in given}
        origin = _FactOrigin(cause, shapes, {}, WHY_CALENDAR, "", self._clock.now())
        slot = SlotRun(
            row=calendars.source_id(name, section),
            name=f"calendar {name}",
            due_at=self._clock.now(),
            timeout_s=0,
            news=dict(calendars.NO_NEWS),
        )
        return await self._take(key, slot, origin, lambda _: given)

    async def _take(
        self,
        key: SessionKey,
        slot: SlotRun,
        origin: _FactOrigin,
        given: Callable[[SourceFacts | None], Mapping[str, object]],
    ) -> SourceFacts:
        """Raises: Unavailable."""
        cause = origin.cause
        for _ in range(TRIES_MAX):
            found = await self._board.find([key.scope], slot.row)
            is_later = found is not None and found.at >= origin.begun_at
            before = await made_by(self._board, cause, found) if found and is_later else None
            if before is not None:
                known: SourceFacts = before.entity
                return known
            blank = SourceFacts(id=slot.row, owner=key.user, agent=key.agent)
            now = self._clock.now()
            after = taken(
                blank if found is None else found.entity,
                origin.shapes,
                given(None if found is None else found.entity),
                now,
                bits_max=self._bits_max,
                cause=cause,
                session=origin.session,
                rules=slot.news,
                others=origin.others,
                is_event=origin.is_event,
            )
            number = 0 if found is None else found.number
            change = Change(by=key.agent, why=origin.why, cause=cause)
            try:
                await self._board.replace(number, after, change, now)
            except WrongLastSequence:
                continue
            crash.point("executor.facts.taken")
            log.info("facts taken", action="executor.facts", session=str(key), row=slot.row)
            return after
        raise Unavailable(f"{slot.row}: others write its facts all the time")
