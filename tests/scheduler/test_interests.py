"""What a cycle looks at because it is time, and not because something is new (FLOW F-13)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from services.scheduler.timetable import cycle
from services.scheduler.timetable.cycle import due
from services.scheduler.timetable.kinds.autonomy import row_of
from services.scheduler.timetable.new_signals import NewSignals
from vigil.contracts import SlotEntry, TimetableRow
from vigil.contracts.board import CycleReport, Ledger
from vigil.errors import ConfigError
from vigil.settings.checks import check_agent
from vigil.settings.config import Config
from vigil.settings.sections import Agent, InterestSection
from vigil.subjects import Scope
from vigil.timetable.ledger import after
from vigil.watching.interests import ROLE, Interest, interests_of

T0: Final = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
CI: Final = "https://ci.example/main"
FEED: Final = "feed:https://a.example/feed"
SLOT: Final = timedelta(minutes=30)


def row(zone: str = "UTC") -> TimetableRow:
    return row_of(Config(), Scope("vigil", "ann"), zone, T0)


class Clock:
    """The slots of a row, one after the other, and what the cycles were told."""

    def __init__(self, *interests: Interest, zone: str = "UTC") -> None:
        self.interests = interests
        self.row = row(zone)
        self.ledger = Ledger()
        self.slot = 0

    def tick(self, state: str = "ran") -> tuple[str, ...] | None:
        """Let one slot pass -> what its cycle was told to look at; None: none began."""
        at = T0 + self.slot * SLOT
        self.slot += 1
        begun = SlotEntry(row=self.row.id, due_at=at, state="running", at=at, session="s")
        found = NewSignals(self.slot)
        entry = cycle.decided(self.row, begun, self.ledger, found, at, self.interests)
        self.ledger = after(self.ledger, replace(entry, kind="autonomy"))
        if entry.state != "running":
            return None
        end = replace(
            begun, kind="autonomy", state=state, at=at + SLOT / 10,
            report=CycleReport() if state == "ran" else None,
        )  # fmt: skip
        self.ledger = after(self.ledger, end)
        for interest in entry.looks:
            assert f"\n- {interest}" in entry.change
        return entry.looks


def test_each_is_due_by_its_own_clock_though_nothing_is_new() -> None:
    clock = Clock(Interest(CI, 1800), Interest(FEED, 3600), Interest(ROLE, 3 * 3600))
    told = [clock.tick() for _ in range(7)]
    assert told == [
        (CI, FEED, ROLE), (CI,), (CI, FEED), (CI,), (CI, FEED), (CI,), (CI, FEED, ROLE),
    ]  # fmt: skip


def test_without_a_clock_nothing_begins_but_the_first() -> None:
    clock = Clock(Interest(CI, 0))
    assert [clock.tick() for _ in range(3)] == [(), None, None]


def test_a_failed_cycle_leaves_what_was_due_to_the_next() -> None:
    clock = Clock(Interest(CI, 3600))
    assert [clock.tick("failed"), clock.tick(), clock.tick()] == [(CI,), (CI,), None]


def test_hours_are_of_the_persons_zone() -> None:
    """12:00 UTC is 13:00 in Vienna."""
    clock = Clock(Interest(CI, 1800, "14:00-15:00"), zone="Europe/Vienna")
    assert [clock.tick() for _ in range(5)] == [(), None, (CI,), (CI,), None]


@given(
    every=st.integers(1, 10_000),
    slots=st.lists(st.integers(1, 5_000), max_size=60),
)
def test_no_interest_waits_longer_than_a_slot_nor_comes_oftener_than_asked(
    every: int, slots: list[int]
) -> None:
    looked: dict[str, datetime] = {}
    at = T0
    for step in slots:
        before = looked.get(CI)
        if due([Interest(CI, every)], looked, "UTC", at):
            assert before is None or (at - before).total_seconds() >= every
            looked[CI] = at
        else:
            assert before is not None
            assert (at - before).total_seconds() < every
        at += timedelta(seconds=step)


def test_what_an_interest_says_of_itself_goes_before_the_setting() -> None:
    looks = (CI, InterestSection(what=FEED, every_s=300, hours="07:00-09:00"))
    assert interests_of(looks, every_s=3600, has_role=True, role_every_s=7) == (
        Interest(ROLE, 7), Interest(CI, 3600), Interest(FEED, 300, "07:00-09:00"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("interest", "reason"),
    [
        (InterestSection(what=CI, hours="9 to 5"), "'9 to 5' must be HH:MM-HH:MM"),
        (InterestSection(what="the weather"), "no spaces"),
        (InterestSection(what=FEED), "is there twice"),
    ],
)
def test_mistakes_name_the_interest_and_the_reason(interest: InterestSection, reason: str) -> None:
    with pytest.raises(ConfigError, match=r"\[agents.a\]: looks: ") as caught:
        check_agent("agents.a", Agent(looks=(FEED, interest)))
    assert reason in str(caught.value)
    assert repr(interest.what) in str(caught.value)
