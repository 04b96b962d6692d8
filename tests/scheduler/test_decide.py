"""The agenda and the reading of turns, by properties: no clock, no broker."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from services.scheduler import decide
from services.scheduler.decide import Agenda, PendingTimer
from tests.support.timers import cancel, schedule, session, turn_of
from vigil import contracts
from vigil.contracts import Effect, TimerKind, TimerRecord
from vigil.errors import InvalidInput
from vigil.subjects import Scope, SessionKey

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
KEY = session()


def entry(
    timer_id: str,
    offset_s: float,
    *,
    key: SessionKey = KEY,
    generation: int = 1,
    kind: TimerKind = "follow_up",
) -> PendingTimer:
    record = TimerRecord(
        session_key=str(key),
        timer_id=timer_id,
        generation=generation,
        fire_at=START + timedelta(seconds=offset_s),
        kind=kind,
        caused_by="effect",
    )
    data = contracts.encode(record)
    return decide.entry_of(key.timer(timer_id, generation), data, None)


def at(offset_s: float) -> datetime:
    return START + timedelta(seconds=offset_s)


entries = st.builds(
    entry,
    st.sampled_from("abcdefgh"),
    st.integers(0, 10),
    key=st.sampled_from([session("t1"), session("t2")]),
    kind=st.sampled_from(["follow_up", "deadline"]),
)


@given(st.lists(entries, unique_by=lambda e: e.subject), st.randoms())
def test_due_order_does_not_depend_on_the_order_of_adding(
    some: list[PendingTimer], shuffler: random.Random
) -> None:
    """S-8: several due fire in order of fire_at, then id."""
    first, second = Agenda(), Agenda()
    for e in some:
        first.add(e)
    shuffled = list(some)
    shuffler.shuffle(shuffled)
    for e in shuffled:
        second.add(e)
    due = first.due(at(10), is_paused=False)
    assert due == second.due(at(10), is_paused=False)
    assert [e.order for e in due] == sorted(e.order for e in some)


class AgendaMachine(RuleBasedStateMachine):
    """The agenda against a plain dict: never early, never dropped, nothing lost (S-8, S-11)."""

    def __init__(self) -> None:
        super().__init__()
        self.agenda = Agenda()
        self.pending: dict[str, PendingTimer] = {}
        self.taken: dict[str, PendingTimer] = {}
        self.done: dict[str, datetime] = {}

    @rule(new=entries)
    def add(self, new: PendingTimer) -> None:
        known = self.pending.get(new.subject) or self.taken.get(new.subject)
        is_repeat = known is not None and known.order == new.order
        is_done = self.done.get(new.subject) == new.record.fire_at
        is_news = not is_repeat and not is_done
        assert self.agenda.add(new) == is_news
        if is_news:
            self.taken.pop(new.subject, None)
            self.pending[new.subject] = new

    @rule(some=entries)
    def drop(self, some: PendingTimer) -> None:
        known = self.pending.pop(some.subject, None) or self.taken.pop(some.subject, None)
        assert self.agenda.drop(some.subject) == known

    @rule(offset_s=st.integers(0, 10), is_paused=st.booleans())
    def take(self, offset_s: int, is_paused: bool) -> None:
        expected = sorted(
            (
                e
                for e in self.pending.values()
                if e.record.fire_at <= at(offset_s) and not (is_paused and e.is_follow_up)
            ),
            key=lambda e: (*e.order, e.subject),
        )
        assert self.agenda.due(at(offset_s), is_paused=is_paused) == expected
        for e in expected:
            self.taken[e.subject] = self.pending.pop(e.subject)

    @rule(is_promoted=st.booleans())
    def finish(self, is_promoted: bool) -> None:
        for subject, e in list(self.taken.items()):
            assert self.agenda.is_taken(e)
            del self.taken[subject]
            if is_promoted:
                self.agenda.settle(e)
                self.done[subject] = e.record.fire_at
            else:
                self.agenda.give_back(e)
                self.pending[subject] = e

    @invariant()
    def counts(self) -> None:
        assert len(self.agenda) == len(self.pending) + len(self.taken)
        for is_paused in (False, True):
            instants = [
                e.record.fire_at
                for e in self.pending.values()
                if not (is_paused and e.is_follow_up)
            ]
            assert self.agenda.next_at(is_paused=is_paused) == min(instants, default=None)
        assert self.agenda.sessions_with_follow_ups() == sorted(
            {e.key for e in self.pending.values() if e.is_follow_up}
        )


TestAgendaMachine = AgendaMachine.TestCase


def test_a_dropped_entry_is_known_as_such_to_whoever_took_it() -> None:
    """S-8: a timer cancelled while it waits for its turn to be promoted is not promoted."""
    agenda = Agenda()
    agenda.add(entry("a", 0))
    (taken,) = agenda.due(at(0), is_paused=False)
    agenda.drop(taken.subject)
    assert not agenda.is_taken(taken)
    agenda.give_back(taken)
    assert len(agenda) == 0


def test_voided_timers_that_are_years_away_do_not_pile_up() -> None:
    """S-8: any duration; the memory of what was cancelled is given back."""
    agenda = Agenda()
    for n in range(10_000):
        agenda.add(entry(f"t{n}", 1e8 + n))
        agenda.drop(KEY.timer(f"t{n}", 1))
    assert len(agenda._follow_ups._heap) <= decide._DEAD_HEAP_ITEMS_MAX + 1


def test_the_memory_of_settled_timers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """S-8: what is forgotten may be promoted again, which is harmless; it's never lost."""
    monkeypatch.setattr(decide, "DONE_MAX", 3)
    agenda = Agenda()
    for n in range(5):
        agenda.settle(entry(f"t{n}", 0))
    assert [agenda.is_settled(entry(f"t{n}", 0)) for n in range(5)] == [False] * 2 + [True] * 3


def changes(*effects: Effect) -> decide.Changes:
    data = contracts.encode(turn_of(KEY, effects))
    return decide.changes_of(KEY.turn, data, None)


def test_of_several_effects_on_one_pair_the_last_counts() -> None:
    """S-8: scheduling the same id again replaces it."""
    twice = changes(schedule(KEY, "a", at(1)), cancel(KEY, "a"), schedule(KEY, "a", at(2)))
    assert [s.entry.record.fire_at for s in twice.scheduled] == [at(2)]
    assert twice.cancelled == ()
    ended = changes(schedule(KEY, "a", at(1)), cancel(KEY, "a"))
    assert ended.scheduled == ()
    assert [c.subject for c in ended.cancelled] == [KEY.timer("a", 1)]


def test_another_generation_is_another_timer() -> None:
    """S-8: a replacement cancels exactly the old pair."""
    found = changes(schedule(KEY, "a", at(2), generation=2), cancel(KEY, "a", generation=1))
    assert [s.entry.subject for s in found.scheduled] == [KEY.timer("a", 2)]
    assert [c.subject for c in found.cancelled] == [KEY.timer("a", 1)]


def test_equal_timers_of_two_sessions_have_different_event_ids() -> None:
    """S-8: the broker drops a repeated id in a whole stream, so an id must name its session."""
    one, other = entry("a", 0), entry("a", 0, key=session("t2"))
    assert decide.fired(one, START).id != decide.fired(other, START).id
    assert decide.fired(one, START).id == decide.fired(one, at(99)).id


@pytest.mark.parametrize(
    ("subject", "record"),
    [
        (KEY.timer("a", 1), b"\xff{"),
        (KEY.timer("b", 1), contracts.encode(entry("a", 0).record)),
        ("timer.session.vigil.ann", contracts.encode(entry("a", 0).record)),
        ("timer.session.vigil.*.t1.x", contracts.encode(entry("a", 0).record)),
        (session("t2").timer("a", 1), contracts.encode(entry("a", 0).record)),
    ],
)
def test_a_record_under_a_subject_that_is_not_its_own_is_refused(
    subject: str, record: bytes
) -> None:
    """S-2: what lies under a foreign or malformed subject reaches nobody's session."""
    with pytest.raises(InvalidInput):
        decide.entry_of(subject, record, None)


@pytest.mark.parametrize("subject", ["session.vigil.ann.t2.turn", "session.vigil.ann._x.turn"])
def test_a_turn_of_another_session_is_refused(subject: str) -> None:
    """S-2: a turn counts only for the session of its subject."""
    with pytest.raises(InvalidInput):
        decide.changes_of(subject, contracts.encode(turn_of(KEY, [])), None)


@given(st.datetimes(timezones=st.just(UTC)))
def test_the_backstop_is_a_date_that_the_broker_can_count(fire_at: datetime) -> None:
    """S-8: any duration; the broker's clock has 64 bits of nanoseconds."""
    backstop = decide.backstop_at(fire_at)
    assert decide.EARLIEST < backstop <= decide.LATEST + timedelta(seconds=2)
    if decide.EARLIEST <= fire_at <= decide.LATEST:
        assert backstop - fire_at == timedelta(seconds=decide.BACKSTOP_DELAY_S)


@pytest.mark.parametrize(
    ("fire_at", "expected"),
    [
        (datetime(2026, 1, 1, 1, 0, 0, 250_000, tzinfo=UTC), "@at 2026-01-01T01:00:02.250000Z"),
        (datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), "@at 2026-01-01T00:00:02Z"),
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5))), "@at 2000-01-01T00:00:02Z"),
        (
            datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5))),
            "@at 2200-01-01T00:00:02Z",
        ),
    ],
)
def test_the_schedule_is_written_in_utc(fire_at: datetime, expected: str) -> None:
    """S-8: RFC 3339 with Z, also for instants that no UTC date can express."""
    (scheduled,) = changes(schedule(KEY, "a", fire_at)).scheduled
    headers = decide.schedule_headers(scheduled.entry)
    assert headers["Nats-Schedule"] == expected
    assert headers["Nats-Schedule-Target"] == KEY.due("a", 1)


def put_off(timer_id: str, offset_s: float, hours_at: datetime, **of: Any) -> PendingTimer:
    """A timer that hours put off which were set then."""
    plain = entry(timer_id, offset_s, **of)
    record = msgspec.structs.replace(plain.record, hours_at=hours_at)
    return decide.entry_of(plain.subject, contracts.encode(record), None)


def test_what_hours_put_off_is_taken_early_once_they_are_others() -> None:
    """L-11: of that person alone, and follow-ups not in a pause of all; due order is kept."""
    agenda, old, new = Agenda(), START, at(1)
    zoe = session("t9", "zoe")
    late, deadline = put_off("b", 900, old), put_off("c", 800, old, kind="deadline")
    others = [entry("a", 700), put_off("d", 600, new), put_off("e", 500, old, key=zoe)]
    for one in (late, deadline, *others):
        agenda.add(one)

    def changed_at(whose: Scope) -> datetime:
        return START if whose == zoe.scope else new

    assert agenda.outdated(changed_at, is_paused=True) == [deadline]
    assert agenda.outdated(changed_at, is_paused=False) == [late]
    assert agenda.outdated(changed_at, is_paused=False) == []
    assert agenda.is_taken(late)
    agenda.give_back(late)
    assert agenda.next_at(is_paused=False) == at(500)
    assert [e.record.timer_id for e in agenda.due(at(900), is_paused=False)] == ["e", "d", "a", "b"]
