"""What becomes of a slot of a watcher, by what its probe saw (LOOPS L-3). Pure.

A watcher is due as any row is; but where another would be run, it's looked first.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from vigil.backoff import doubled
from vigil.contracts import SlotEntry
from vigil.contracts.board import LastSeen, SlotState, Watched
from vigil.timetable.probe import ProbeAnswer, is_of
from vigil.watching.watched import what_of

from .check_outcome import CheckOutcome

FIRST: Final = "it looked for the first time"
UNCHANGED: Final = "nothing has changed"
FACTS_CHANGED: Final = "nothing has changed but its facts"
FACTS_TAKEN: Final = "it looked, and its facts are taken"
WAITS: Final = "its last look failed, and it waits"
NOW: Final = "Nothing has changed since the last look. There is:"
RETRY: Final = timedelta(minutes=1)
RETRY_MAX: Final = timedelta(hours=6)
COUNTED_MAX: Final = 1_000
"""Failures are counted so far."""


def must_wait(seen: LastSeen | None, watch: Watched, now: datetime) -> bool:
    """Whether it is too early to look again after a failure."""
    if seen is None or seen.what != what_of(watch) or seen.retry_at is None:
        return False
    return now < seen.retry_at


def waited(entry: SlotEntry) -> SlotEntry:
    """Return the entry of a slot at which it isn't looked."""
    return _not_run(entry, "skipped", WAITS)


def decided(
    entry: SlotEntry,
    watch: Watched,
    seen: LastSeen | None,
    answer: ProbeAnswer,
    *,
    is_run: bool = True,
) -> CheckOutcome:
    """Decide about a slot that would be run.

    Args:
        entry: says ``running``.
        seen: before.
        is_run: whether anything is to be run if it has changed.
    """
    entry = replace(entry, facts=answer.facts)
    has_changed = answer.facts is not None and bool(answer.facts.changed)
    if answer.problem:
        failed = _failed(watch, seen, entry.at)
        return CheckOutcome(_not_run(entry, "failed", f"its look failed: {answer.problem}"), failed)
    if not is_of(seen, watch):
        return CheckOutcome(_not_run(entry, "skipped", FIRST), answer.seen)
    if not answer.change:
        reason = FACTS_CHANGED if has_changed else UNCHANGED
        return CheckOutcome(_not_run(entry, "skipped", reason), answer.seen)
    if not is_run:
        return CheckOutcome(_not_run(entry, "skipped", FACTS_TAKEN), answer.seen)
    begun = replace(entry, change=answer.change, is_trusted=answer.is_trusted, facts=None)
    return CheckOutcome(begun, answer.seen)


def _not_run(entry: SlotEntry, state: SlotState, reason: str) -> SlotEntry:
    facts = entry.facts if entry.facts is not None and entry.facts.changed else None
    return replace(entry, state=state, reason=reason, session="", is_late=False, facts=facts)


def _failed(watch: Watched, seen: LastSeen | None, now: datetime) -> LastSeen:
    """Keep what was seen before, and look again the later, the oftener it failed."""
    if seen is None or seen.what != what_of(watch):
        seen = LastSeen(what=what_of(watch))
    wait = doubled(RETRY, RETRY_MAX, seen.failures + 1)
    failures = min(seen.failures + 1, COUNTED_MAX)
    return replace(seen, failures=failures, retry_at=now + wait)


def described(answer: ProbeAnswer) -> str:
    """Return what a run by hand is shown of a look.

    >>> described(ProbeAnswer(seen=LastSeen(what="a", digest="1", text="one")))
    'Nothing has changed since the last look. There is:\\none'
    """
    if answer.problem:
        return f"It can't be looked at: {answer.problem}"
    return answer.change or f"{NOW}\n{answer.seen.text}"


def is_about(answer: ProbeAnswer | None, watch: Watched) -> bool:
    """Whether a look was at what is watched now."""
    return answer is not None and answer.seen.what == what_of(watch)
