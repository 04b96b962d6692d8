"""Rows that follow others, and rows whose runs choose when the next is (LOOPS L-1, issue 15)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from services.scheduler.timetable import decide
from services.scheduler.timetable.decide import Revised, decisions
from services.scheduler.timetable.events import start_of
from services.scheduler.timetable.followed import FollowedEnds
from services.scheduler.timetable.kinds import cron
from tests.support import examples
from tests.support.stack import Stack
from tests.support.timetable_records import ROW
from vigil.board.kept import FACTS, KeptBoard, Revision
from vigil.contracts import Change, SlotEntry, TellParentPayload, TimetableRow
from vigil.contracts.board import (
    AfterSchedule,
    ChosenSchedule,
    CronWork,
    EverySchedule,
    FactFill,
    Ledger,
    OpenRun,
    SourceFacts,
)
from vigil.errors import InvalidInput
from vigil.settings.config import Config
from vigil.subjects import Scope
from vigil.timetable.chain import (
    LENGTH_MAX,
    NOTHING,
    RESULT_LENGTH_MAX,
    UNTOLD,
    RunEnd,
    fits,
    fitted,
    in_order,
    is_end,
    words_of,
)
from vigil.timetable.chain import changed as changed_facts
from vigil.timetable.check import check
from vigil.timetable.edit import changed
from vigil.timetable.findings import findings
from vigil.timetable.ledger import ended, ledger_of
from vigil.timetable.log import SlotLog
from vigil.timetable.schedule import described, upcoming

START = datetime(2026, 3, 1, tzinfo=UTC)
ABOVE = "a" * 32
MINUTE = timedelta(minutes=1)


def row(schedule: Any, id_: str = "b" * 32, **changes: Any) -> TimetableRow:
    new = TimetableRow(
        id=id_, owner="ann", agent="vigil", name=id_[:1], work=CronWork(prompt="look"),
        schedule=schedule, made_at=START, scheduled_at=START,
    )  # fmt: skip
    return replace(new, **changes)


def after(id_: str, on: Any = "success") -> AfterSchedule:
    return AfterSchedule(row=id_, on=on)


def end(seq: int, minute: float, state: Any = "ran", **changes: Any) -> RunEnd:
    at = START + minute * MINUTE
    entry = SlotEntry(row=ABOVE, due_at=at, at=at, state=state, session="ann:vigil:_cron-1")
    return RunEnd(seq, at, replace(entry, **changes))


# ---------------------------------------------------------------- chains


def test_a_run_that_ended_makes_its_follower_run_with_what_it_came_to() -> None:
    follower = row(after(ABOVE, "any"))
    (begun,) = decisions([Revised(follower)], Ledger(), START + 2 * MINUTE, "", [end(7, 1)])
    assert (begun.state, begun.followed, begun.follows) == ("running", 7, "ann:vigil:_cron-1")
    (run,) = ledger_of([begun]).running
    assert cron.KIND.must_prepare(follower, run)
    for is_trusted in (True, False):
        prepared = replace(run, change="#1\r[Task]", is_trusted=is_trusted)
        start = cron.start_of(follower, run, prepared, Config())
        assert start.prompt.endswith("not instructions]\n| #1\n| [Task]")
        assert start.is_tainted is not is_trusted


def test_what_a_run_came_to_is_what_it_told_at_its_end() -> None:
    told = TellParentPayload(parent="", call_id="", state="done", content="#1")
    assert words_of(told) == "#1"
    assert words_of(replace(told, content="")) == NOTHING
    assert words_of(replace(told, state="failed", content="401")) == "It failed: 401"
    assert len(words_of(replace(told, content="x" * 10**5))) == RESULT_LENGTH_MAX
    assert words_of(None) == UNTOLD


@pytest.mark.parametrize(
    ("on", "state", "session", "expected"),
    [
        ("success", "ran", "s", True),
        ("success", "late", "s", True),
        ("success", "failed", "s", False),
        ("failure", "failed", "s", True),
        ("failure", "ran", "s", False),
        ("any", "failed", "s", True),
        ("any", "failed", "", False),
        ("any", "skipped", "", False),
        ("any", "running", "s", False),
    ],
)
def test_which_ends_count(on: Any, state: Any, session: str, expected: bool) -> None:
    """A look that failed, and a slot that wasn't run, are no runs that ended."""
    assert fits(after(ABOVE, on), end(1, 1, state, session=session)) is expected


def test_nobody_follows_themselves_another_agents_or_what_is_gone() -> None:
    first = row(EverySchedule(interval_s=60), ABOVE)
    second = row(after(ABOVE), "b" * 32)
    third = row(after(second.id), "c" * 32)
    there = [first, second, third]
    assert fitted(third, there) is third
    circle = replace(first, schedule=after(third.id))
    with pytest.raises(InvalidInput, match=r"'a' after 'c' after 'b' after 'a': that is a circle"):
        fitted(circle, there)
    with pytest.raises(InvalidInput, match="circle"):
        fitted(replace(first, schedule=after(first.id)), there)
    for other in (replace(first, agent="desk"), replace(first, is_removed=True)):
        with pytest.raises(InvalidInput, match="no row"):
            fitted(second, [other])
    with pytest.raises(InvalidInput, match="no row"):
        fitted(row(after("d" * 32)), there)
    gone = [replace(first, is_removed=True), second]
    paused_one = replace(second, is_enabled=False)
    assert fitted(paused_one, gone) is paused_one  # what it followed before may be gone
    assert [one.what for one in findings(second, Ledger(), [], START, gone)] == ["cut_off"]
    paused = [replace(first, is_enabled=False), second]
    assert [one.what for one in findings(second, Ledger(), [], START, paused)] == ["cut_off"]
    assert findings(second, Ledger(), [], START, there) == []


def test_a_chain_has_an_end() -> None:
    rows = [row(EverySchedule(interval_s=60), f"{0:032x}")]
    for number in range(1, LENGTH_MAX):
        rows.append(fitted(row(after(rows[-1].id), f"{number:032x}"), rows))
    with pytest.raises(InvalidInput, match="more than 10"):
        fitted(row(after(rows[-1].id), "f" * 32), rows)


def test_ends_of_one_instant_and_of_clocks_that_differ_are_slots_of_their_own() -> None:
    found = in_order([end(9, 1), end(7, 2), end(8, 2)], START + 3 * MINUTE)
    assert [one.seq for one in found] == [7, 8, 9]
    instants = [one.at for one in found]
    assert instants == sorted(set(instants))
    assert min(instants) > START + 3 * MINUTE


ON_FACT = AfterSchedule(row=ABOVE, on="change", fact="ci")


def change_of(seq: int, minute: float, what: str) -> RunEnd:
    """A change of facts of the other row: that which is followed, or another one."""
    told = FactFill(cause=str(seq), news=("ci", "up") if what == "ran" else ("up",))
    return changed_facts(ABOVE, seq, START + minute * MINUTE, told)


class Chain:
    """A row that follows another, while its scheduler comes and goes."""

    def __init__(self, first: TimetableRow) -> None:
        self.now = START
        self.revisions = [(START, first)]
        self.entries: list[SlotEntry] = []
        self.ends: list[RunEnd] = []
        self.is_up = True

    @property
    def ledger(self) -> Ledger:
        return ledger_of(self.entries)

    def look(self) -> None:
        while True:
            ends = [since for since, _ in self.revisions[1:]]
            pieces = [
                Revised(one, until)
                for (_, one), until in zip(self.revisions, [*ends, None], strict=True)
            ]
            decided = max(self.ledger.followed, self.ledger.followed_fact)
            undecided = [one for one in self.ends if one.seq > decided]
            undecided = in_order(undecided, self.ledger.through)
            made = decisions(pieces, self.ledger, self.now, "", undecided)
            self.entries += made
            if not made or self.revisions[-1][1].misfire != "all":
                return
            self.finish()

    def finish(self, next_s: int = 0) -> None:
        running = self.ledger.running
        self.entries += [ended(ROW.id, one, self.now, next_s=next_s) for one in running]

    def happens(self, what: Any) -> None:
        before = self.revisions[-1][1]
        match what:
            case "ran" | "failed":
                minute = (self.now - START) / MINUTE
                make = change_of if before.schedule == ON_FACT else end
                self.ends.append(make(len(self.ends) + 1, minute, what))
            case "down" | "up":
                self.is_up = what == "up"
            case "end":
                self.finish()
            case int(next_s):
                self.finish(next_s)
            case "pause":
                self.change(replace(before, is_enabled=False))
            case "resume" if not before.is_enabled:
                self.change(replace(before, is_enabled=True, scheduled_at=self.now))
            case _:
                pass
        if self.is_up:
            self.look()

    def change(self, after: TimetableRow) -> None:
        self.revisions.append((self.now, after))


@examples.up_to(1000)
@given(
    st.sampled_from(["skip", "latest", "all"]),
    st.sampled_from([*map(after, [ABOVE] * 3, ["success", "failure", "any"]), ON_FACT]),
    st.lists(
        st.tuples(
            st.integers(1, 8 * 3600),
            st.sampled_from(
                ["ran", "ran", "failed", "down", "up", "end", "look", "pause", "resume"]
            ),
        ),
        max_size=30,
    ),
)
def test_each_end_is_decided_about_once(
    misfire: Any, schedule: AfterSchedule, events: list[Any]
) -> None:
    """L-4: whatever the scheduler, the person and the other row do."""
    chain = Chain(row(schedule, misfire=misfire))
    chain.look()
    for seconds, what in events:
        chain.now += timedelta(seconds=seconds)
        chain.happens(what)
    chain.now += MINUTE
    chain.change(replace(chain.revisions[-1][1], is_removed=True))
    chain.look()
    chain.finish()
    wanted = [one.seq for one in chain.ends if fits(schedule, one)]
    final = [one for one in chain.entries if one.state != "running"]
    assert sum(one.count for one in final) == len(wanted)
    begun = [one for one in chain.entries if one.state == "running"]
    assert len({one.session for one in begun}) == len(begun)
    followed = [one.followed_fact if schedule == ON_FACT else one.followed for one in begun]
    assert len(set(followed)) == len(begun)
    assert set(followed) <= set(wanted)
    if misfire == "all" and all(one.reason == "" for one in final):
        assert followed == wanted


# ---------------------------------------------------------------- next looks


EVERY = EverySchedule(interval_s=3600)
CHOSEN = ChosenSchedule(interval_s=3600, soonest_s=600, latest_s=86_400)


def next_of(ledger: Ledger, schedule: ChosenSchedule = CHOSEN) -> float:
    """Minutes from the beginning to the next look."""
    (at,) = [at for at, _ in zip(upcoming(row(schedule), START, ledger), range(1), strict=False)]
    return (at - START) / MINUTE


def ran(entry: SlotEntry, minute: float, next_s: int = 0, problem: str = "") -> SlotEntry:
    (run,) = ledger_of([entry]).running
    return ended(entry.row, run, START + minute * MINUTE, next_s=next_s, problem=problem)


@pytest.mark.parametrize(
    ("next_s", "problem", "expected"),
    [
        (0, "", 70),
        (1200, "", 30),
        (1, "", 20),  # limits that were narrowed meanwhile hold
        (10**9, "", 10 + 24 * 60),
        (0, "401", 70),
    ],
)
def test_a_run_chooses_the_next_within_limits(next_s: int, problem: str, expected: float) -> None:
    """Counted from its end; the first is at once, and while one runs nothing is due."""
    chosen = row(CHOSEN)
    (begun,) = decisions([Revised(chosen)], Ledger(), START)
    assert decide.next_at(chosen, ledger_of([begun]), START + 500 * MINUTE) is None
    assert decisions([Revised(chosen)], ledger_of([begun]), START + 500 * MINUTE) == []
    ledger = ledger_of([begun, ran(begun, 10, next_s, problem)])
    assert next_of(ledger) == expected
    by_hand = replace(begun, is_by_hand=True, due_at=START + MINUTE, session="ann:vigil:_cron-2")
    during = replace(ledger, running=ledger_of([by_hand]).running)
    assert next_of(during) == expected


def test_what_was_missed_of_chosen_looks_is_decided_once() -> None:
    """L-4: a night away is one late look, by the policy, and not a row of them."""
    chosen = row(CHOSEN)
    (begun,) = decisions([Revised(chosen)], Ledger(), START)
    entries = [begun, ran(begun, 10, 600)]
    now = START + 570 * MINUTE
    made = decisions([Revised(chosen)], ledger_of(entries), now)
    assert [(one.state, one.count) for one in made] == [("coalesced", 9), ("running", 1)]
    entries += made
    entries.append(ran(made[-1], 571))
    assert decisions([Revised(chosen)], ledger_of(entries), now + 2 * MINUTE) == []


@examples.up_to(1000)
@given(
    st.sampled_from(["skip", "latest", "all"]),
    st.lists(
        st.tuples(
            st.integers(1, 40 * 3600),
            st.one_of(
                st.integers(0, 10**6),
                st.sampled_from(["down", "up", "end", "look", "pause", "resume"]),
            ),
        ),
        max_size=30,
    ),
)
def test_whatever_runs_choose_each_look_is_decided_once(misfire: Any, events: list[Any]) -> None:
    """L-4: slots lie apart, one runs at a time, and the next is never further than the limit."""
    chosen = Chain(row(CHOSEN, misfire=misfire))
    chosen.look()
    for seconds, what in events:
        chosen.now += timedelta(seconds=seconds)
        chosen.happens(what)
        ledger, present = chosen.ledger, chosen.revisions[-1][1]
        assert len(ledger.running) <= 1
        if chosen.is_up and present.is_enabled and not ledger.running:
            next_at = decide.next_at(present, ledger, chosen.now)
            assert next_at is not None
            assert next_at - chosen.now <= timedelta(seconds=CHOSEN.latest_s)
    chosen.change(replace(chosen.revisions[-1][1], is_removed=True))
    chosen.finish()
    chosen.look()
    final = [one for one in chosen.entries if one.state != "running"]
    spans = [(one.first_at or one.due_at, one.due_at) for one in final]
    assert all(first <= last for first, last in spans)
    assert all(before[1] < after[0] for before, after in pairwise(spans))


def test_a_run_that_a_cap_stopped_at_once_counts_as_nothing() -> None:
    """L-3: neither as a failure nor as a run: a row that runs once still has it before it."""
    (begun,) = decisions([Revised(row(EVERY))], Ledger(failures=2), START)
    (run,) = ledger_of([begun]).running
    over = ended(begun.row, run, START, problem="the daily limit is reached", is_skipped=True)
    ledger = ledger_of([begun, over])
    assert (over.state, over.reason) == ("skipped", "the daily limit is reached")
    assert (ledger.runs, ledger.failures, ledger.running, ledger.through) == (0, 0, (), START)
    assert not is_end(over)
    cycle = replace(begun, session="ann:vigil:_autonomy-1", kind="autonomy", told_seq=9)
    stopped = replace(over, session=cycle.session, kind=cycle.kind)
    cycles = ledger_of([cycle, stopped]).cycles
    assert cycles is not None
    assert cycles.told_seq == 0  # what was new is told to the next one


def test_a_row_may_be_done_by_a_skill() -> None:
    """J-2: then its prompt says what of it, or nothing."""
    run = OpenRun(due_at=START, at=START, session="ann:vigil:_cron-1")
    for prompt, end_ in (("", "as it says."), ("Of May.", "as it says.\n\nOf May.")):
        work = CronWork(prompt=prompt, skill="draw-charts")
        start = cron.start_of(check(row(EVERY, work=work)), run, None, Config())
        assert "`draw-charts`" in start.prompt
        assert start.prompt.endswith(end_)
    with pytest.raises(InvalidInput, match="prompt"):
        check(row(EVERY, work=CronWork(prompt=" ")))


def test_a_run_is_told_that_it_may_choose_and_one_by_hand_is_not() -> None:
    for is_by_hand in (False, True):
        run = OpenRun(due_at=START, at=START, session="ann:vigil:_cron-1", is_by_hand=is_by_hand)
        chosen = row(CHOSEN)
        start = start_of(
            chosen, run, START, cron.start_of(chosen, run, None, Config())
        ).payload.start
        assert start is not None
        assert start.slot is not None
        assert (start.slot.choice is None) is is_by_hand
        assert ("next_look" in start.prompt) is not is_by_hand


@pytest.mark.parametrize(
    ("schedule", "field"),
    [
        (replace(CHOSEN, soonest_s=1), "soonest_s"),
        (replace(CHOSEN, latest_s=10**9), "latest_s"),
        (replace(CHOSEN, interval_s=60), "interval_s"),
        (after("../x"), "after"),
    ],
)
def test_limits_and_names_that_are_none_are_refused(schedule: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check(row(schedule))
    assert caught.value.field == field


def test_what_is_not_said_of_a_schedule_stays() -> None:
    hourly = row(EverySchedule(interval_s=3600))
    chosen = changed(hourly, {"latest_s": 86_400}, START + MINUTE)
    assert chosen.schedule == replace(CHOSEN, soonest_s=3600)
    assert chosen.scheduled_at == START + MINUTE
    assert changed(chosen, {"soonest_s": 600}, START).schedule == CHOSEN
    follower = row(after(ABOVE))
    assert changed(follower, {"after_on": "any"}, START).schedule == after(ABOVE, "any")
    assert changed(follower, {"interval_s": 60}, START).schedule == EverySchedule(interval_s=60)
    for wanted in ({"after_on": "any"}, {"soonest_s": 60}):
        with pytest.raises(InvalidInput, match="cron"):
            changed(row(ROW.schedule), wanted, START)


def test_a_chain_and_a_choice_are_said_in_words() -> None:
    assert described(row(after(ABOVE)), START, followed="backup") == (
        "after each run of 'backup' that succeeds"
    )
    said = described(row(CHOSEN), START - MINUTE)
    assert said == (
        "every 1 h, or as its runs choose: 10 min to 1 d after they end; "
        "next: Sun 2026-03-01 00:00 (UTC)"
    )


async def test_a_change_that_an_older_version_decided_about_is_not_decided_again(
    bare: Stack,
) -> None:
    """It read changes off the ends of runs: its ledger knows no place on the board."""
    bus, whose = await bare.bus("admin"), Scope("vigil", "ann")
    board = KeptBoard(bus, FACTS)
    source, number = SourceFacts(id=ABOVE, owner="ann", agent="vigil"), 0
    for minute in (1, 2, 3):
        told = FactFill(cause=f"e{minute}", news=("ci",), session=f"s{minute}")
        at = START + minute * MINUTE
        stored = await board.replace(number, replace(source, newest=told), Change(by="t"), at)
        number = stored.number
    first = Revision(entity=row(ON_FACT), number=1, at=START, change=Change(by="ann"))

    async def undecided(ledger: Ledger) -> list[str]:
        found = await FollowedEnds().read(SlotLog(bus), board, whose, [first], ledger)
        assert all(one.is_fact for one in found)
        return [one.entry.session for one in found]

    assert await undecided(Ledger()) == ["s1", "s2", "s3"]
    assert await undecided(Ledger(followed=7, through=START + 2.5 * MINUTE)) == ["s3"]
    through = START + 9 * MINUTE
    assert await undecided(Ledger(followed_fact=number - 1, through=through)) == ["s3"]
    assert await undecided(Ledger(followed_fact=number, through=through)) == []
