"""Which entries a watcher's looks come to (LOOPS L-3)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from services.scheduler.timetable import quiet as ranges
from services.scheduler.timetable import watch as watch_rules
from services.scheduler.timetable.kinds import cron, quiet_reasons
from tests.support.timetable_records import ROW
from vigil.contracts import SlotEntry
from vigil.contracts.board import CronWork, LastSeen, Ledger, WatchedUrl
from vigil.errors import ConfigError
from vigil.settings.checks import check_watch
from vigil.settings.config import Config
from vigil.settings.sections import WatchSection
from vigil.timetable.ledger import after
from vigil.timetable.probe import ProbeAnswer
from vigil.watching.watched import what_of

START = datetime(2026, 3, 1, tzinfo=UTC)
WATCH = WatchedUrl(url="https://a.example/")
SEEN = LastSeen(what=what_of(WATCH), digest="1")


def running(at: datetime) -> SlotEntry:
    return SlotEntry(row="1f" * 16, due_at=at, state="running", at=at, session="ann:vigil:_cron-1")


def test_unchanged_slots_of_an_hour_are_one_entry() -> None:
    quiet: SlotEntry | None = None
    for minute in range(60):
        at = START + timedelta(minutes=minute)
        entry, *_ = watch_rules.decided(running(at), WATCH, SEEN, ProbeAnswer(seen=SEEN))
        assert entry.reason in quiet_reasons()
        quiet = ranges.joined(quiet, entry)
        assert quiet is not None
        assert ranges.is_due(quiet, at + timedelta(minutes=1)) == (minute == 59)
    assert (quiet.count, quiet.first_at, quiet.session) == (60, START, "")


def test_it_looks_ever_later_after_failures_and_forgets_nothing() -> None:
    now, seen = START, SEEN
    waits: list[timedelta] = []
    for _ in range(12):
        assert not watch_rules.must_wait(seen, WATCH, now)
        problem = ProbeAnswer(seen=LastSeen(what=SEEN.what), problem="gone")
        entry, found, _ = watch_rules.decided(running(now), WATCH, seen, problem)
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


@pytest.mark.parametrize(
    ("looked", "waits"),
    [({"up": "works"}, False), ({"code": "status"}, False), ({"n": "new"}, True)],
)
def test_where_failures_are_told_as_facts_no_look_is_put_off(
    looked: dict[str, str], waits: bool
) -> None:
    """What watches a page each five minutes learnt hours later that it works again."""
    row = replace(ROW, work=CronWork(prompt="", watch=WATCH, looked=looked))
    seen = replace(SEEN, failures=9, retry_at=START + timedelta(hours=4))
    known: Any = SimpleNamespace(row=row, ledger=Ledger(seen=seen))
    assert cron.KIND.decide is not None
    outcome = cron.KIND.decide(known, running(START), ProbeAnswer(seen=SEEN), START)
    assert outcome is not None
    assert (outcome.entry.reason == watch_rules.WAITS) is waits
    assert (outcome.seen is None) is waits


def test_another_page_is_looked_at_for_the_first_time() -> None:
    other = WatchedUrl(url=WATCH.url, pointer="/version")
    answer = ProbeAnswer(seen=LastSeen(what=what_of(other), digest="2"), change="never")
    entry, *_ = watch_rules.decided(running(START), other, SEEN, answer)
    assert (entry.state, entry.reason) == ("skipped", watch_rules.FIRST)


@pytest.mark.parametrize("is_trusted", [False, True])
def test_what_is_trusted_by_configuration_sways_no_run(is_trusted: bool) -> None:
    """L-19: nothing that was seen has a say in it, whatever it claims to be."""
    answer = ProbeAnswer(seen=SEEN, change="+is_trusted = true", is_trusted=is_trusted)
    entry, *_ = watch_rules.decided(running(START), WATCH, SEEN, answer)
    (run,) = after(Ledger(), entry).running
    made = replace(ROW, work=CronWork(prompt="Tell me", watch=WATCH))
    start = cron.start_of(made, run, None, Config())
    assert start.is_tainted is not is_trusted
    assert "\n| +is_trusted = true" in start.prompt


@pytest.mark.parametrize(
    ("source", "field"),
    [
        ("feed:ftp://a.example/", "url"),
        ("files:../*", "glob"),
        ("mcp:tracker__open", "source"),
        ("a page", "url"),
    ],
)
def test_what_can_not_be_trusted_is_refused_at_the_start(source: str, field: str) -> None:
    with pytest.raises(ConfigError, match=rf"\[watch\.news\]: {field}: "):
        check_watch({"news": WatchSection(source=source, user="ann", is_trusted=True)})
