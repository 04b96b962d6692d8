"""Every instant at which a row is due ends in exactly one state of its ledger (SPEC J-4, LOOPS
L-4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, takewhile
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from services.scheduler.timetable import decide
from services.scheduler.timetable import events as told_of
from services.scheduler.timetable.decide import Revised, begun_again, decisions
from services.scheduler.timetable.events import start_of
from services.scheduler.timetable.kinds import cron as jobs
from services.scheduler.timetable.known import KnownRow
from tests.support import examples
from vigil.board.kept import Revision
from vigil.contracts import (
    Change,
    SlotEntry,
    TimetableRow,
)
from vigil.contracts.board import (
    CronSchedule,
    CronWork,
    CycleLedger,
    EverySchedule,
    Ledger,
    MaintenanceWork,
    OnceSchedule,
    OpenRun,
)
from vigil.settings.config import Config
from vigil.timetable import reasons
from vigil.timetable.findings import findings
from vigil.timetable.ledger import ENDS, begun, is_busy, kept, ledger_of, put_off
from vigil.timetable.ledger import ended as end_of
from vigil.timetable.log import Placed
from vigil.timetable.schedule import (
    COUNTED_MAX,
    RUNS_MAX,
    due_between,
    is_active,
    upcoming,
    upcoming_runs,
)

ROW = "1f" * 16
START = datetime(2026, 3, 1, tzinfo=UTC)
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata")


def row(schedule: Any = None, **changes: Any) -> TimetableRow:
    return replace(
        TimetableRow(
            id=ROW, owner="ann", agent="vigil", name="briefing", work=CronWork(prompt="look"),
            schedule=schedule or cron("0 9 * * *"), made_at=START, scheduled_at=START,
        ),
        **changes,
    )  # fmt: skip


def cron(expression: str, zone: str = "UTC") -> CronSchedule:
    return CronSchedule(expression=expression, zone=zone)


def at(hour: int, minute: int = 0, day: int = 2, second: int = 0) -> datetime:
    return datetime(2026, 3, day, hour, minute, second, tzinfo=UTC)


def states(made: list[SlotEntry]) -> list[tuple[str, int]]:
    return [(one.state, one.count) for one in made]


# ---------------------------------------------------------------- rules


def test_the_newest_missed_one_is_run_and_stands_for_the_others() -> None:
    """SPEC J-4: `latest`, the default; within half a period of the newest."""
    hourly = row(cron("0 * * * *"))
    made = decisions([Revised(hourly)], Ledger(through=at(6)), at(9, 20))
    assert states(made) == [("coalesced", 2), ("running", 1)]
    assert made[0].first_at == at(7)
    assert made[1].due_at == at(9)
    assert made[1].is_late
    assert ended(made[1], at(9, 21)).state == "late"


def test_what_was_missed_by_more_than_the_grace_is_missed() -> None:
    made = decisions([Revised(row(cron("0 * * * *")))], Ledger(through=at(6)), at(9, 40))
    assert [(*one, made[0].reason) for one in states(made)] == [("missed", 3, reasons.TOO_LATE)]


def test_a_row_that_skips_runs_on_time_or_not() -> None:
    skipping = row(cron("0 * * * *"), misfire="skip")
    assert states(decisions([Revised(skipping)], Ledger(through=at(6)), at(9, 20))) == [
        ("missed", 3)
    ]
    on_time = decisions([Revised(skipping)], Ledger(through=at(6)), at(9, 0, second=30))
    assert states(on_time) == [("missed", 2), ("running", 1)]
    assert ended(on_time[1], at(9, 1)).state == "ran"


def test_each_is_run_one_after_another_if_the_row_wants_all() -> None:
    every = row(cron("0 * * * *"), misfire="all")
    entries: list[SlotEntry] = [slot_of(at(6))]
    for hour in (7, 8, 9):
        (begun,) = decisions([Revised(every)], ledger_of(entries), at(9, 20))
        assert begun.due_at == at(hour)
        entries.append(begun)
        assert decisions([Revised(every)], ledger_of(entries), at(9, 21)) == []
        entries.append(ended(begun, at(9, 22)))
    assert decisions([Revised(every)], ledger_of(entries), at(9, 30)) == []


def ended(begun: SlotEntry, now: datetime) -> SlotEntry:
    """The end of the run that an entry began."""
    (run,) = ledger_of([begun]).running
    return end_of(begun.row, run, now)


def slot_of(due_at: datetime, state: Any = "ran") -> SlotEntry:
    return SlotEntry(row=ROW, due_at=due_at, state=state, at=due_at)


def test_what_is_due_while_it_runs_is_skipped_or_runs_beside_it() -> None:
    entries = [slot_of(at(8), "running")]
    hourly = row(cron("0 * * * *"))
    (skipped,) = decisions([Revised(hourly)], ledger_of(entries), at(9))
    assert (skipped.state, skipped.reason) == ("skipped", reasons.STILL_RUNNING)
    (begun,) = decisions([Revised(replace(hourly, may_overlap=True))], ledger_of(entries), at(9))
    assert begun.state == "running"


def test_outside_its_hours_nothing_is_run() -> None:
    """The start belongs to the hours, the end doesn't, and they go over midnight."""
    hourly = row(cron("0 * * * *"), active_hours="22:00-06:00", zone="Europe/Berlin")
    ran = [
        hour
        for hour in range(24)
        if decisions([Revised(hourly)], Ledger(through=at(hour) - timedelta(hours=1)), at(hour))[
            -1
        ].state
        == "running"
    ]
    assert ran == [0, 1, 2, 3, 4, 21, 22, 23]  # UTC


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"misfire": "latest"}, [("missed", 3), ("skipped", 3)]),
        ({"misfire": "latest", "grace_s": 86_400},
         [("coalesced", 2), ("running", 1), ("skipped", 3)]),
        ({"misfire": "skip"}, [("missed", 3), ("skipped", 3)]),
        ({"misfire": "all"}, [("running", 1)]),
    ],
)  # fmt: skip
def test_what_was_missed_in_its_hours_is_judged_by_when_it_was_due(
    changes: dict[str, Any], expected: list[tuple[str, int]]
) -> None:
    """Issue 32: decided after them, it was told to lie outside, even if each was to run."""
    office = row(cron("*/30 * * * *"), active_hours="09:00-17:00", **changes)
    made = decisions([Revised(office)], Ledger(through=at(15)), at(18, 10))
    assert states(made) == expected
    assert {one.due_at for one in made if one.reason == reasons.HOURS} <= {at(18)}


@pytest.mark.parametrize(
    ("schedule", "hours"),
    [
        (cron("0 * * * *", "Europe/Berlin"), "08:00-10:00"),
        (cron("*/20 * * * *", "Europe/Berlin"), "22:30-02:30"),
        (cron("30 2 * * *", "Europe/Berlin"), "02:00-03:00"),
        (cron("0 9 * * 1", "America/New_York"), "08:00-18:00"),
        (EverySchedule(interval_s=5400), "01:00-04:00"),
        (EverySchedule(interval_s=5400), ""),
    ],
)
def test_the_next_times_are_those_within_the_hours(schedule: Any, hours: str) -> None:
    """The same as looking at each; also where clocks change, on 29 March in Berlin."""
    office = row(schedule, active_hours=hours, zone=getattr(schedule, "zone", "Europe/Berlin"))
    until = START + timedelta(days=40)
    each = takewhile(lambda one: one < until, upcoming(office, START))
    wanted = [one for one in each if is_active(hours, office.zone, one)]
    found = list(takewhile(lambda one: one < until, upcoming_runs(office, START)))
    assert found == wanted
    assert len(wanted) > 4


def test_what_is_never_due_within_its_hours_has_no_next_time() -> None:
    night = row(cron("* * 2 * * *"), active_hours="08:00-18:00")
    assert list(upcoming_runs(night, START)) == []


def test_a_pause_is_the_reason_of_what_it_skipped() -> None:
    made = decisions([Revised(row())], Ledger(through=at(8)), at(9, 1), "paused by ann")
    assert [(one.state, one.reason) for one in made] == [("skipped", "paused by ann")]


def test_an_interval_begins_at_once_and_goes_on_from_there() -> None:
    """SPEC J-2."""
    every = row(EverySchedule(interval_s=3600), made_at=at(8, 17), scheduled_at=at(8, 17))
    assert list(islice(upcoming(every, START), 2)) == [at(8, 17), at(9, 17)]
    changed = replace(every, scheduled_at=at(10, 30))
    assert list(islice(upcoming(changed, START), 2)) == [at(11, 30), at(12, 30)]


def test_a_row_that_runs_once_is_over_then() -> None:
    once = row(runs_once=True)
    (begun,) = decisions([Revised(once)], Ledger(through=at(8)), at(9))
    ledger = ledger_of([begun, ended(begun, at(9, 1))])
    assert decisions([Revised(once)], ledger, at(9, 0, day=3)) == []
    assert decide.next_at(once, ledger, at(9, 2)) is None


def test_what_is_no_longer_kept_is_neither_undecided_nor_run_again() -> None:
    """A row's newest entry may be older than what is kept: then there is none."""
    now, since = at(9, day=20), at(9, day=10)
    rare = row(cron("0 9 3 * *"))
    ledger = kept(rare, Ledger(), since)
    assert decisions([Revised(rare)], ledger, now) == []
    assert decide.next_at(rare, ledger, now) == datetime(2026, 4, 3, 9, tzinfo=UTC)
    assert [one.what for one in findings(rare, Ledger(), [], now)] == ["undecided"]
    assert findings(rare, ledger, [], now) == []
    once = row(cron("0 9 * * *"), runs_once=True)
    assert decisions([Revised(once)], kept(once, Ledger(), since), now) == []
    new = row(cron("0 9 3 * *"), scheduled_at=since)
    assert kept(new, Ledger(), since) == Ledger()


def test_a_run_by_hand_takes_no_slot() -> None:
    by_hand = replace(slot_of(at(8, 30), "running"), is_by_hand=True)
    ledger = ledger_of([slot_of(at(8)), by_hand])
    assert (ledger.through, ledger.runs) == (at(8), 0)
    assert decide.next_at(row(cron("0 * * * *")), ledger, at(8, 40)) == at(9)


def test_a_pause_of_a_row_is_one_entry() -> None:
    """And what it left undecided before is another."""
    daily = row()
    paused = replace(daily, is_enabled=False)
    again = replace(daily, scheduled_at=at(12, day=9))
    pieces = [Revised(daily, at(12, day=3)), Revised(paused, at(12, day=9)), Revised(again)]
    made = decisions(pieces, Ledger(through=at(9, day=2)), at(8, day=10))
    assert [(one.state, one.reason, one.count) for one in made] == [
        ("missed", reasons.PAUSED_BEFORE, 1), ("skipped", reasons.PAUSED, 6),
    ]  # fmt: skip


def test_a_run_that_gives_no_end_is_lost() -> None:
    begun = slot_of(at(9), "running")
    ledger = ledger_of([begun])
    assert decide.overdue(row(), ledger, at(9, 1)) == []
    assert [one.due_at for one in decide.overdue(row(), ledger, at(9, 3))] == [at(9)]
    assert decide.lost(row(), ledger, at(9, 3)) == []
    assert [one.state for one in decide.lost(row(), ledger, at(9, 13))] == ["failed"]


def test_a_run_is_lost_if_it_gives_no_end_after_it_was_told_to() -> None:
    """The machine slept from 9:00 to 17:00: it's told to end then, and has as long as ever."""
    known = KnownRow()
    known.revisions.append(Revision(entity=row(), number=1, at=at(8), change=Change(by="ann")))
    known.place(Placed(ledger_of([slot_of(at(9), "running")]), 1))
    assert known.lost(at(17), is_alone=True) == []
    assert known.next_at(at(17)) == at(17, 10) + timedelta(milliseconds=1)
    assert known.lost(at(17, 9), is_alone=True) == []
    assert [one.state for one in known.lost(at(17, 10), is_alone=True)] == ["failed"]
    assert [one.state for one in known.lost(at(17), is_alone=False)] == ["failed"]


def test_a_year_of_seconds_is_counted_to_a_bound() -> None:
    """Nobody may stall the timetable by a long absence."""
    for schedule in (cron("* * * * * *"), EverySchedule(interval_s=1)):
        due = due_between(row(schedule), START, START + timedelta(days=366))
        assert (len(due.newest), due.earlier) == (RUNS_MAX, COUNTED_MAX)
        assert due.newest[-1] == START + timedelta(days=366)
        assert due.last == due.newest[0] - timedelta(seconds=1)


@pytest.mark.parametrize("zone", ZONES)
def test_a_daily_row_is_due_once_every_day_of_the_year(zone: str) -> None:
    """SPEC J-4: DST neither doubles nor drops it, at any minute of the day."""
    tz = ZoneInfo(zone)
    start = datetime(2026, 1, 1, tzinfo=tz)
    for minute in (*range(0, 4 * 60, 20), *range(4 * 60, 24 * 60, 4 * 60)):  # clocks change early
        daily = row(cron(f"{minute % 60} {minute // 60} * * *", zone), scheduled_at=start)
        due = list(islice(upcoming(daily, start - timedelta(seconds=1)), 365))
        days = [one.astimezone(tz).date() for one in due]
        assert days == [start.date() + timedelta(days=n) for n in range(365)]


def test_a_time_on_clocks_is_reckoned_by_the_rules_of_today_and_is_due_once() -> None:
    """Issue 32: a zone's law changed after it was set, or the database that knew of it came."""
    by_old_rules = at(17, day=10)
    once = OnceSchedule(at=by_old_rules, wall="2026-12-01T09:00:00", zone="America/Vancouver")
    nine = datetime(2026, 12, 1, 16, tzinfo=UTC)
    vancouver = row(once)
    assert decide.next_at(vancouver, Ledger(), START) == nine
    assert decisions([Revised(vancouver)], Ledger(), nine - timedelta(seconds=1)) == []
    (begun,) = decisions([Revised(vancouver)], Ledger(), nine)
    assert (begun.state, begun.due_at) == ("running", nine)
    for through in (nine, nine - timedelta(hours=1)):
        assert decide.next_at(vancouver, Ledger(through=through), nine) is None


def ran_at(entries: list[SlotEntry]) -> list[str]:
    return [f"{one.due_at:%H:%M}" for one in entries if one.state == "running"]


def after_set_back(every: TimetableRow, entries: list[SlotEntry], now: datetime) -> Town:
    """Have a clock that is ahead set back, as the scheduler does."""
    town = Town(every)
    town.entries, town.now = entries, now
    assert decide.is_ahead(ledger_of(entries), now)
    town.entries = [*entries, decide.set_back(every, ledger_of(entries), entries[::-1], now)]
    (open_,) = ledger_of(town.entries).running
    assert decide.overdue(every, ledger_of(town.entries), now + timedelta(minutes=3)) == [open_]
    town.entries.append(end_of(ROW, open_, now))
    assert not decide.is_ahead(ledger_of(town.entries), now)
    return town


def test_after_the_clock_was_set_back_the_next_is_due_by_it_and_none_runs_twice() -> None:
    """Issue 32: a clock an hour ahead ran 9:10 to 9:12, and what lay between was folded."""
    every = row(cron("* * * * *"))
    town = Town(every)
    town.entries = [slot_of(at(8, 10))]
    for minute in (10, 11, 12):
        town.now = at(9, minute)
        town.look()
        if minute < 12:
            town.end()
    assert ran_at(town.entries) == ["09:10", "09:11", "09:12"]
    town = after_set_back(every, town.entries, at(8, 13, second=30))
    ledger = ledger_of(town.entries)
    assert decide.next_at(every, ledger, town.now) == at(8, 14)
    assert next(upcoming(every, town.now, ledger)) == at(8, 14)
    for minute in range(14, 80):
        town.now = at(8) + timedelta(minutes=minute)
        town.look()
        town.end()
    ran = ran_at(town.entries)[3:]
    assert ran[:2] == ["08:14", "08:15"]
    assert not {"09:10", "09:11", "09:12"} & set(ran)
    assert {"09:09", "09:13"} <= set(ran)
    assert len(ran) == len(set(ran)) == 66 - 3
    assert ledger_of(town.entries).ran_through is None, "that is over"
    wrong = findings(every, ledger_of(town.entries), town.entries[::-1], town.now)
    (found,) = [one for one in wrong if one.what == "clock"]
    assert "08:13 UTC from after 2026-03-02 09:12 UTC" in found.text


def test_a_clock_that_is_set_right_by_a_little_changes_nothing() -> None:
    ledger = ledger_of([slot_of(at(9))])
    assert not decide.is_ahead(ledger, at(8, 59, second=30))
    assert decide.is_ahead(ledger, at(8, 58))
    assert not decide.is_ahead(Ledger(), START)


def test_a_row_that_was_made_by_a_clock_ahead_holds_from_now_on() -> None:
    known = KnownRow()
    hourly = row(EverySchedule(interval_s=60), made_at=at(9), scheduled_at=at(9))
    known.revisions.append(Revision(entity=hourly, number=1, at=at(9), change=Change(by="ann")))
    again, why = known.wanted("UTC", at(8, 13))
    assert (again.scheduled_at, why) == (at(8, 13), "the clock was ahead when it was set")
    assert next(upcoming(again, at(8, 13))) == at(8, 14)
    assert known.wanted("UTC", at(9)) == (hourly, "")


def test_what_a_run_was_told_while_it_was_looked_is_no_news_any_more() -> None:
    """One by hand may end between the look of another and what is decided by it."""
    known = KnownRow()
    known.answer = "mails up to 7"
    assert (known.take_answer(), known.take_answer()) == ("mails up to 7", None)
    known.answer = "mails up to 7"
    known.place(Placed(Ledger(cycles=CycleLedger(told_seq=7)), 3))
    assert known.take_answer() is None
    known.checked_from = known.told_seq
    known.answer = "mails up to 9"
    assert known.take_answer() == "mails up to 9"


# ---------------------------------------------------------------- whatever happens


SCHEDULES = st.one_of(
    st.builds(
        cron,
        st.sampled_from(
            ["0 9 * * *", "30 2 * * *", "*/30 * * * *", "15 1,2,3 * * 0", "0 0 1 * *", "@hourly"]
        ),
        st.sampled_from(ZONES),
    ),
    st.builds(EverySchedule, interval_s=st.sampled_from([600, 3600, 86_400, 7 * 86_400])),
    st.builds(
        OnceSchedule, at=st.integers(0, 300 * 86_400).map(lambda s: START + timedelta(seconds=s))
    ),
)
EVENTS = st.lists(
    st.tuples(
        st.one_of(st.integers(1, 3600), st.integers(1, 20 * 86_400)),
        st.one_of(
            st.sampled_from(["down", "up", "end", "look", "look", "pause", "resume", "rename"]),
            st.sampled_from(["pause all", "resume all"]),
            st.sampled_from(["unanswered", "unanswered", "by hand"]),
            SCHEDULES,
        ),
    ),
    min_size=2,
    max_size=20,
)


class Town:
    """A row, its revisions and its ledger, while the scheduler comes and goes."""

    def __init__(self, first: TimetableRow) -> None:
        self.now = START
        self.revisions = [(START, first)]
        self.entries: list[SlotEntry] = []
        self.is_up = True
        self.refusal = ""

    def pieces(self) -> list[Revised]:
        ends = [since for since, _ in self.revisions[1:]]
        return [
            Revised(one, until)
            for (_, one), until in zip(self.revisions, [*ends, None], strict=True)
        ]

    def look(self) -> None:
        for _ in range(RUNS_MAX * 2):
            self.entries += begun_again(
                self.revisions[-1][1], ledger_of(self.entries), self.now, self.refusal
            )
            ledger = ledger_of(self.entries)
            made = decisions(self.pieces(), ledger, self.now, self.refusal)
            self.entries += made
            if not made or self.revisions[-1][1].misfire != "all":
                return
            self.end()

    def end(self) -> None:
        ledger = ledger_of(self.entries)
        self.entries += [end_of(ROW, one, self.now) for one in ledger.running]

    def leave_unanswered(self) -> None:
        """End what runs as the executor does, if no model answered."""
        row = self.revisions[-1][1]
        for run in ledger_of(self.entries).running:
            until = told_of.slot_of(row, run).again_until
            waiting = None if until is None else put_off(ROW, run, self.now, until, "away")
            self.entries.append(waiting or end_of(ROW, run, self.now, problem="away"))

    def begin_by_hand(self) -> None:
        row = self.revisions[-1][1]
        if not is_busy(row, ledger_of(self.entries)):
            self.entries.append(begun(row, self.now))

    def change(self, **changes: Any) -> None:
        before = self.revisions[-1][1]
        self.revisions.append((self.now, replace(before, **changes)))

    def happens(self, what: Any) -> None:
        match what:
            case "down" | "up":
                self.is_up = what == "up"
            case "end":
                self.end()
            case "unanswered":
                self.leave_unanswered()
            case "by hand":
                self.begin_by_hand()
            case "pause all" | "resume all":
                self.refusal = "paused" if what == "pause all" else ""
            case "pause":
                self.change(is_enabled=False)
            case "resume":
                self.change(is_enabled=True, scheduled_at=self.now)
            case "rename":
                self.change(name=f"n{len(self.revisions)}")
            case "look":
                pass
            case schedule:
                self.change(schedule=schedule, scheduled_at=self.now)
        if self.is_up:
            self.look()

    def due(self) -> list[datetime]:
        """Return each instant at which the row was due, by what it was then."""
        ends = [since for since, _ in self.revisions[1:]]
        found: list[datetime] = []
        for (since, one), until in zip(self.revisions, [*ends, self.now], strict=True):
            for instant in upcoming(one, max(since, one.scheduled_at) - timedelta(microseconds=1)):
                if instant > until:
                    break
                found.append(instant)
        return sorted(set(found))


@settings(max_examples=examples.repeats(2000, fast=40))
@given(
    SCHEDULES,
    st.sampled_from(["skip", "latest", "all"]),
    st.sampled_from(["", "08:00-18:00", "22:00-04:00"]),
    st.sampled_from([0, 300]),
    EVENTS,
)
def test_each_slot_ends_in_exactly_one_state(
    schedule: Any, misfire: Any, hours: str, jitter_s: int, events: list[tuple[int, Any]]
) -> None:
    town = Town(row(schedule, misfire=misfire, active_hours=hours, jitter_s=jitter_s))
    town.look()
    for seconds, what in events:
        town.now += timedelta(seconds=seconds)
        town.happens(what)
    town.now += timedelta(seconds=jitter_s)
    town.change(is_removed=True)
    town.look()
    town.end()
    slots = [one for one in town.entries if not one.is_by_hand]
    final = [one for one in slots if one.state not in ("running", "waiting")]
    for before, after in pairwise(final):
        assert before.due_at != after.due_at
    due = town.due()
    for instant in due:
        holders = [one for one in final if (one.first_at or one.due_at) <= instant <= one.due_at]
        assert len(holders) == 1, (instant, holders)
    for one in final:
        if one.reason == reasons.HOURS:
            assert not any(is_active(hours, "UTC", at) for at in (one.first_at, one.due_at) if at)
    if all(one.count < COUNTED_MAX for one in final):
        assert sum(one.count for one in final) == len(due)
    sessions = [one.session for one in town.entries if one.state == "running"]
    assert len(set(sessions)) == len(sessions), "each try is a session of its own"
    for one in slots:
        if one.state == "waiting":
            assert one.again_at is not None
            assert one.again_until is not None
            assert one.at < one.again_at <= one.again_until
    told = [one.due_at for one in slots if one.state in ENDS]
    assert len(set(told)) == len(told), "of each slot one end is told, if any"
    ledger = ledger_of(town.entries)
    assert (ledger.running, ledger.waiting) == ((), ())


def test_a_run_names_its_row_whose_budget_it_has_a_part_in() -> None:
    run = OpenRun(due_at=START, at=START, session="ann:vigil:_cron-1f")
    work = CronWork(prompt="look", model="big", daily_tokens=5000)
    given = jobs.start_of(row(work=work), run, None, Config())
    start = start_of(row(work=work), run, START, given).payload.start
    assert start is not None
    assert (start.row, start.row_tokens, start.model) == (row().id, 5000, "big")


def test_what_was_done_for_a_run_is_forgotten_with_its_end() -> None:
    """A scheduler that is active for a year would remember each run of it."""
    known, entries = KnownRow(), list[SlotEntry]()
    for day in range(1, 31):
        begun = replace(slot_of(at(9, day=day), "running"), session=f"ann:vigil:_cron-{day}")
        entries.append(begun)
        known.place(Placed(ledger_of(entries), len(entries)))
        known.begun.add(begun.session)
        known.told_to_end.add(begun.session)
        known.place(Placed(ledger_of(entries), len(entries)))
        assert known.begun == known.told_to_end == {begun.session}
        entries.append(ended(begun, at(9, 5, day=day)))
        known.place(Placed(ledger_of(entries), len(entries)))
        assert known.begun == known.told_to_end == set()


# ---------------------------------------------------------------- begun again


def waiting(of: TimetableRow, tries: int = 1) -> tuple[list[SlotEntry], SlotEntry]:
    """Return the ledger of a row due at 9:00, of whose tries none was answered, and its end."""
    entries, now = decisions([Revised(of)], Ledger(through=at(8)), at(9)), at(9)
    for number in range(tries):
        (run,) = ledger_of(entries).running
        until = told_of.slot_of(of, run).again_until
        assert until is not None
        now = max(run.at, now) + timedelta(minutes=1)
        found = put_off(ROW, run, now, until, "away.")
        assert found is not None
        entries.append(found)
        if number < tries - 1:
            assert found.again_at is not None
            entries += begun_again(of, ledger_of(entries), found.again_at)
    return entries, entries[-1]


def test_pauses_grow_until_it_would_be_too_late() -> None:
    """J-4: for two hours of a daily row; of one that is due again soon, not beyond that."""
    daily, minutes = row(), list[int]()
    for tries in range(1, 7):
        _, last = waiting(daily, tries)
        assert last.again_at is not None
        minutes.append((last.again_at - last.at) // timedelta(minutes=1))
        assert last.again_until == at(11)
    assert minutes == [1, 2, 4, 8, 16, 30]
    assert last.reason == f"It is begun again at {last.again_at:%Y-%m-%d %H:%M:%S} UTC: away."
    (run,) = ledger_of(decisions([Revised(daily)], Ledger(through=at(8)), at(9))).running
    assert put_off(ROW, run, at(10, 59), at(11), "away") is not None
    assert put_off(ROW, run, at(11), at(11), "away") is None
    often = row(EverySchedule(interval_s=240), grace_s=3600)
    assert told_of.slot_of(often, replace(run, due_at=START)).again_until == START + timedelta(
        seconds=240
    )


def test_what_becomes_of_one_that_waits() -> None:
    """J-4: nothing is begun that may not be, or that another run stands for."""
    of = row()
    entries, last = waiting(of)
    ledger, due = ledger_of(entries), last.again_at
    assert due is not None
    assert begun_again(of, ledger, due - timedelta(seconds=1)) == []

    def fate(one: TimetableRow = of, now: datetime = due, refusal: str = "") -> tuple[str, str]:
        (made,) = begun_again(one, ledger, now, refusal)
        assert ledger_of([*entries, made]).waiting == ()
        return made.state, made.reason

    assert fate() == ("running", "")
    assert fate(now=at(11, 0)) == ("running", "")
    assert fate(now=at(11, 2)) == ("missed", reasons.TOO_LATE)
    assert fate(refusal="paused") == ("skipped", "paused")
    assert fate(replace(of, is_enabled=False)) == ("skipped", reasons.PAUSED)
    assert fate(replace(of, is_removed=True)) == ("missed", reasons.REMOVED)
    by_hand = ledger_of([*entries, begun(of, due)])
    (made,) = begun_again(of, by_hand, due)
    assert (made.state, made.reason) == ("coalesced", reasons.REPLACED)


def test_a_slot_counts_once_however_often_it_is_begun() -> None:
    of = row()
    entries, last = waiting(of, 3)
    assert last.again_at is not None
    entries += begun_again(of, ledger_of(entries), last.again_at)
    (run,) = ledger_of(entries).running
    assert (run.tries, run.is_late) == (3, True)
    ledger = ledger_of([*entries, end_of(ROW, run, run.at, problem="away")])
    assert (ledger.runs, ledger.failures, ledger.through) == (1, 1, at(9))
    ledger = ledger_of([*entries, end_of(ROW, run, run.at)])
    assert (ledger.runs, ledger.failures) == (1, 0)
    known = KnownRow()
    known.revisions = [Revision(entity=of, number=1, at=START, change=Change(by="ann"))]
    known.place(Placed(ledger_of(entries[:-1]), 1))
    assert known.next_at(last.at) == last.again_at


def test_only_jobs_of_people_are_begun_again_and_none_by_hand() -> None:
    run = OpenRun(due_at=at(9), at=at(9), session="ann:vigil:_cron-1f")
    assert told_of.slot_of(row(), run).again_until == at(11)
    assert told_of.slot_of(row(), replace(run, is_by_hand=True)).again_until is None
    assert told_of.slot_of(row(misfire="skip"), run).again_until is None
    assert told_of.slot_of(row(work=MaintenanceWork()), run).again_until is None
