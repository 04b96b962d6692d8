"""What a row that follows others reads of them, and reads again after a failure (FLOW F-10)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from services.scheduler.timetable.followed import FollowedEnds
from tests.scheduler.test_chains import ABOVE, MINUTE, ON_FACT, START, after, row
from tests.support.stack import Stack
from vigil.board.kept import FACTS, KeptBoard, Revision
from vigil.contracts import Change, SlotEntry
from vigil.contracts.board import FactFill, Ledger, SourceFacts
from vigil.errors import Unavailable
from vigil.subjects import Scope
from vigil.timetable.log import SlotLog


class ShakyBoard(KeptBoard[SourceFacts]):
    """A board that is read back once it was asked a second time."""

    failures = 1

    async def history(
        self, one: Revision[SourceFacts], after: int = 0
    ) -> list[Revision[SourceFacts]]:
        if self.failures:
            self.failures -= 1
            raise Unavailable("no answer in time")
        return await super().history(one, after)


class ShakyLog(SlotLog):
    """A ledger of which the same is true."""

    failures = 1

    async def backwards(self, whose: Scope, row: str) -> AsyncIterator[tuple[int, SlotEntry]]:
        if self.failures:
            self.failures -= 1
            raise Unavailable("no answer in time")
        async for found in super().backwards(whose, row):
            yield found


async def test_nothing_is_lost_where_the_broker_was_away_in_the_middle(bare: Stack) -> None:
    """The clock tries again a second later in the same term: a change was taken for read by then,
    and a row that followed it never ran."""
    bus, whose = await bare.bus("admin"), Scope("vigil", "ann")
    board, log, change = ShakyBoard(bus, FACTS), ShakyLog(bus), Change(by="ann")
    source = SourceFacts(id=ABOVE, owner="ann", agent="vigil")
    told = FactFill(cause="e1", news=("ci",), session="s1")
    await board.replace(0, replace(source, newest=told), change, START + MINUTE)
    # It follows a fact by now, and followed the ends of a row before: both are undecided.
    rows = [
        Revision(entity=row(schedule), number=number, at=START, change=change)
        for number, schedule in enumerate((after("c" * 32), ON_FACT), start=1)
    ]
    ends = FollowedEnds()
    for _ in range(board.failures + log.failures):
        with pytest.raises(Unavailable):
            await ends.read(log, board, whose, rows, Ledger())
    for _ in range(2):
        found = await ends.read(log, board, whose, rows, Ledger())
        assert [one.entry.session for one in found] == ["s1"]
