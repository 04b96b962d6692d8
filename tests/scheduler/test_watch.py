"""Which entries a watcher's looks come to (LOOPS L-3)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from services.scheduler.timetable import looks
from services.scheduler.timetable import watch as watch_rules
from vigil.contracts import SlotEntry
from vigil.contracts.board import LastSeen, WatchedUrl
from vigil.timetable.probe import ProbeAnswer
from vigil.timetable.watched import what_of

START = datetime(2026, 3, 1, tzinfo=UTC)
WATCH = WatchedUrl(url="https://a.example/")
SEEN = LastSeen(what=what_of(WATCH), digest="1")


def running(at: datetime) -> SlotEntry:
    return SlotEntry(row="1f" * 16, due_at=at, state="running", at=at, session="ann:vigil:_cron-1")


def test_unchanged_slots_of_an_hour_are_one_entry() -> None:
    quiet: SlotEntry | None = None
    for minute in range(60):
        at = START + timedelta(minutes=minute)
        entry, _ = watch_rules.looked(running(at), WATCH, SEEN, ProbeAnswer(seen=SEEN))
        assert looks.is_quiet(entry)
        quiet = looks.joined(quiet, entry)
        assert quiet is not None
        assert looks.is_due(quiet, at + timedelta(minutes=1)) == (minute == 59)
    assert (quiet.count, quiet.first_at, quiet.session) == (60, START, "")


def test_it_looks_ever_later_after_failures_and_forgets_nothing() -> None:
    now, seen = START, SEEN
    waits: list[timedelta] = []
    for _ in range(12):
        assert not watch_rules.must_wait(seen, WATCH, now)
        problem = ProbeAnswer(seen=LastSeen(what=SEEN.what), problem="gone")
        entry, found = watch_rules.looked(running(now), WATCH, seen, problem)
        assert (entry.state, entry.session) == ("failed", "")
        assert found is not None
        assert found.retry_at is not None
        assert watch_rules.must_wait(found, WATCH, now)
        waits.append(found.retry_at - now)
        now, seen = found.retry_at, found
    assert waits[:3] == [timedelta(minutes=n) for n in (1, 2, 4)]
    assert waits[-1] == timedelta(hours=6)
    assert seen.digest == SEEN.digest
    assert not watch_rules.must_wait(seen, WatchedUrl(url="https://b.example/"), now)


def test_another_page_is_looked_at_for_the_first_time() -> None:
    other = WatchedUrl(url=WATCH.url, pointer="/version")
    answer = ProbeAnswer(seen=LastSeen(what=what_of(other), digest="2"), change="never")
    entry, _ = watch_rules.looked(running(START), other, SEEN, answer)
    assert (entry.state, entry.reason) == ("skipped", watch_rules.FIRST)
