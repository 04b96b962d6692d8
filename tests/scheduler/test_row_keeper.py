"""Rows of the system, kept as the configuration has them while others write them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

import pytest
from msgspec.structs import replace

from services.scheduler.timetable import row_keeper
from services.scheduler.timetable.row_keeper import RowKeeper
from tests.support.goal_records import ANN
from tests.support.races import overtake
from tests.support.stack import Stack
from tests.support.world import StoppedClock
from vigil.board.kept import ROWS, KeptBoard
from vigil.bus.bus import Bus
from vigil.contracts import Change
from vigil.contracts.board import EverySchedule
from vigil.settings.config import Config
from vigil.settings.cortex import Cortex
from vigil.settings.sections import Autonomy

BEFORE: Final = Cortex(autonomy_interval_secs=1800, bulletin_interval_secs=3600)
AFTER: Final = Cortex(autonomy_interval_secs=7200, bulletin_interval_secs=7200)


class Kept:
    """A keeper of Ann's rows, which are there as they were configured first."""

    def __init__(self, bus: Bus, admin: Bus) -> None:
        clock, config = StoppedClock(), Config(autonomy=Autonomy(enabled=True))
        settings = SimpleNamespace(config=config)
        context: Any = SimpleNamespace(bus=bus, clock=clock, settings=settings)
        self.pause: Any = SimpleNamespace(
            cortex=BEFORE, zone_of=lambda _: "UTC", is_erasing=lambda _: False
        )
        self.keeper = RowKeeper(context, self.pause)
        self.board = KeptBoard(admin, ROWS)
        self.bus = bus

    @classmethod
    async def begun(cls, bare: Stack, monkeypatch: pytest.MonkeyPatch) -> Kept:
        """One that tries again at once."""
        monkeypatch.setattr(row_keeper, "AGAIN_S", 0.01)
        return cls(await bare.bus("scheduler"), await bare.bus("admin"))

    async def intervals(self) -> dict[str, int]:
        """How often each is due, in seconds."""
        rows = [one.entity for one in await self.board.all(ANN)]
        return {
            row.name: row.schedule.interval_s
            for row in rows
            if isinstance(row.schedule, EverySchedule)
        }

    def configure(self, cortex: Cortex) -> None:
        """Have that hold from now on; all is to be kept anew."""
        self.pause.cortex = cortex
        self.keeper._done.clear()


async def test_a_row_that_is_moved_to_another_zone_is_still_configured_anew(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stayed as it was until the settings changed once more, or the scheduler was another."""
    kept = await Kept.begun(bare, monkeypatch)
    await kept.keeper._keep(ANN)
    assert (await kept.intervals())["autonomy"] == 1800

    async def move() -> None:
        for one in await kept.board.all(ANN):
            moved = replace(one.entity, zone="Asia/Tokyo")
            await kept.board.replace(one.number, moved, Change(by="scheduler"), one.at)

    kept.configure(AFTER)
    overtake(monkeypatch, kept.bus, move)
    await kept.keeper._keep(ANN)
    found = await kept.intervals()
    assert (found["autonomy"], found["bulletin"]) == (7200, 7200)


async def test_what_was_configured_before_takes_the_place_of_nothing_newer(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who begins to talk has rows made while the settings change: both are done side by side."""
    kept = await Kept.begun(bare, monkeypatch)

    async def change() -> None:
        kept.configure(AFTER)
        await kept.keeper._keep(ANN)

    overtake(monkeypatch, kept.bus, change)
    await kept.keeper._keep(ANN)
    found = await kept.intervals()
    assert (found["autonomy"], found["bulletin"]) == (7200, 7200)
