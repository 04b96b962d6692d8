"""Which schedules of a session should be there, as its turns tell. Pure.

For what comes after a restore, when TIMERS is of another moment than SESSIONS. What this names that
is over already is harmless: a timer counts only if it is open in its session's state.
"""

from __future__ import annotations

from collections.abc import Iterable

from vigil.contracts import FollowUp, TimerRecord, Turn
from vigil.subjects import SessionKey

from .decide import Changes, PendingTimer, Scheduled, entry_at


def may_wait(turn: Turn) -> bool:
    """Whether a session whose last turn is this one may wait for a timer."""
    return bool(turn.state.follow_ups) or _has_deadlines(turn)


def _has_deadlines(turn: Turn) -> bool:
    """Whether something is open that a deadline would go on with."""
    state = turn.state
    return (
        state.loop is not None
        or state.gathering is not None
        or bool(state.tasks)
        or bool(state.approvals)
        or state.pause is not None
        or state.digest is not None
    )


def open_schedules(key: SessionKey, last: Turn, changes: Iterable[Changes]) -> list[Scheduled]:
    """Return the schedules that the session waits for.

    Args:
        last: the session's last turn.
        changes: what each of its turns changed about timers, the oldest first.
    """
    left: dict[str, Scheduled] = {}
    for change in changes:
        for cancelled in change.cancelled:
            left.pop(cancelled.subject, None)
        for scheduled in change.scheduled:
            left[scheduled.entry.subject] = scheduled
    wanted = {key.timer(id_, one.generation): id_ for id_, one in last.state.follow_ups.items()}
    found = [s for s in left.values() if s.entry.subject in wanted or _may_be_owed(s.entry, last)]
    known = {scheduled.entry.subject for scheduled in found}
    lost = [(id_, subject) for subject, id_ in wanted.items() if subject not in known]
    return found + [_made_anew(key, id_, last.state.follow_ups[id_], last) for id_, _ in lost]


def _may_be_owed(entry: PendingTimer, last: Turn) -> bool:
    """Whether it's a deadline that the session may wait for."""
    return not entry.is_follow_up and _has_deadlines(last)


def _made_anew(key: SessionKey, timer_id: str, follow_up: FollowUp, last: Turn) -> Scheduled:
    """Return the schedule of a follow-up whose own turn is too old to be there."""
    record = TimerRecord(
        session_key=str(key),
        timer_id=timer_id,
        generation=follow_up.generation,
        fire_at=follow_up.fire_at,
        kind="follow_up",
        caused_by=last.id,
    )
    return Scheduled(effect_id=f"rearm-{last.id}-{timer_id}", entry=entry_at(key, record, None))
