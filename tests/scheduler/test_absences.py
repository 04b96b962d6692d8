"""What was missed while everything was off is told to whose row it is (J-4, L-13)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from services.scheduler.absences import log as absences
from tests.support.stack import Stack
from vigil.board.kept import ROWS, KeptBoard
from vigil.contracts import Change, SlotEntry, TimetableRow, decode_event
from vigil.contracts.board import CronWork, EverySchedule
from vigil.contracts.events import ToldEvent
from vigil.subjects import Scope
from vigil.teams import TEAM
from vigil.timetable import reasons
from vigil.timetable.log import Placed

ID = "a" * 32
NAME = "morning brief"
POINT = "scheduler.slot.missed"


class Killed(Exception):
    """The process ended there."""


def row_of(owner: str) -> TimetableRow:
    now = datetime.now(UTC)
    return TimetableRow(
        id=ID, owner=owner, agent="vigil", name=NAME, work=CronWork(prompt="Look"),
        schedule=EverySchedule(interval_s=86_400), made_at=now, scheduled_at=now,
    )  # fmt: skip


def test_members_of_a_team_are_told_its_row_by_its_id() -> None:
    """X-3: its name is what one of them wrote."""
    assert (absences.called(row_of(TEAM)), absences.called(row_of("ann"))) == (ID[:8], NAME)


async def test_who_is_killed_once_it_was_told_tells_it_again_as_the_same(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-5."""
    await bare.start("scheduler")
    admin, now = await bare.bus("admin"), datetime.now(UTC)
    await KeptBoard(admin, ROWS).replace(0, row_of("ann"), Change(by="ann"), now)
    due_at = now - timedelta(hours=3)
    entry = SlotEntry(
        row=ID, due_at=due_at, at=now, state="missed", reason=next(iter(reasons.AWAY)), count=2
    )
    whose, ledger = Scope("vigil", "ann"), absences.NotifyingLog(bare.contexts["scheduler"])
    deaths = [POINT]

    def die_once(name: str) -> None:
        if name in deaths:
            deaths.remove(name)
            raise Killed

    monkeypatch.setattr(absences.crash, "point", die_once)
    with pytest.raises(Killed):
        await ledger.append(whose, Placed(), entry)
    await ledger.append(whose, Placed(), entry)
    stored = await admin.read("SESSIONS", ["session.*.*.*.in.told.>"])
    told = [decode_event(one.data) for one in stored]
    (event,) = told
    assert isinstance(event, ToldEvent)
    assert event.payload.text == f"2 runs of {NAME} were missed while off: none was made up for."
