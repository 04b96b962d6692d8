"""Rows that follow others: which may, and which ends of a run make one due. Pure.

A row that follows another is due at each end of a run of it that fits; one that follows facts at
each change of them that is news, whoever told it: a run, a look, an event of a hook. An end is
known by its place in the ledger of the other, a change by its place on the board; up to which all
are decided about is in the ledger of the one that follows, so each is decided about once. What
comes of it is decided as of any instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from msgspec.structs import replace

from ..contracts import SlotEntry, TellParentPayload, TimetableRow
from ..contracts.board import AfterSchedule, FactFill
from ..errors import InvalidInput
from ..facts.followed import is_followed
from ..facts.shown import HOOK, shapes_of
from .ledger import ENDS
from .schedule import Due, due_of

LENGTH_MAX: Final = 10
"""Rows that run one after the other."""
RESULT_LENGTH_MAX: Final = 6_000
"""Characters of a result that the next run is shown."""
NOTHING: Final = "It had nothing to say."
UNTOLD: Final = "It gave no end, or that is kept no more."


class RunEnd(NamedTuple):
    """An end of a run that another row follows."""

    seq: int
    """Its place in the ledger."""
    at: datetime
    entry: SlotEntry
    """Of a change of facts one that only has them."""
    is_fact: bool = False
    """Whether it is no end, but a change of facts: its place is on the board."""


def changed(source: str, seq: int, at: datetime, fill: FactFill) -> RunEnd:
    """Return a change of a source's facts, as what a row follows."""
    entry = SlotEntry(row=source, due_at=at, state="ran", at=at, session=fill.session, facts=fill)
    return RunEnd(seq, at, entry, is_fact=True)


def fitted(row: TimetableRow, others: Iterable[TimetableRow]) -> TimetableRow:
    """Return a row that may be among the owner's others.

    Args:
        others: ended ones, and it as it was, too.

    Raises:
        InvalidInput: it newly follows no row, one of another agent, or itself, by however many.
    """
    schedule, known = row.schedule, {one.id: one for one in others}
    before = known.get(row.id)
    if not isinstance(schedule, AfterSchedule) or row.is_removed:
        return row
    if before is not None and before.schedule == schedule and not before.is_removed:
        return row
    if schedule.hook:
        return row  # who stores it knows the hooks (`facts.followed.check_hook`)
    above = known.get(schedule.row)
    is_there = above is not None and not above.is_removed and above.agent == row.agent
    if above is None or not is_there or (above.is_of_system and schedule.on != "change"):
        raise InvalidInput(
            "after", f"there is no row {schedule.row[:8]!r} of {row.agent} to follow"
        )
    if schedule.on == "change" and not shapes_of(above):
        raise InvalidInput("after_on", f"{above.name!r} names no facts that could change")
    if schedule.fact and schedule.fact not in shapes_of(above):
        raise InvalidInput("after_on", f"{above.name!r} names no fact {schedule.fact!r}")
    _check_path(row, known)
    return row


def _check_path(row: TimetableRow, known: dict[str, TimetableRow]) -> None:
    names = [row.name]
    at = row
    while isinstance(at.schedule, AfterSchedule) and at.schedule.row in known:
        if at.schedule.row == row.id:
            path = " after ".join(repr(name) for name in [*names, row.name])
            raise InvalidInput("after", f"{path}: that is a circle, and none would ever run")
        at = known[at.schedule.row]
        names.append(at.name)
        if len(names) > LENGTH_MAX:
            raise InvalidInput("after", f"more than {LENGTH_MAX} rows would follow one another")


def followed_name(row: TimetableRow, rows: Iterable[TimetableRow]) -> str:
    """Return the name of the row that one follows; empty: it follows none that is there."""
    if not isinstance(row.schedule, AfterSchedule):
        return ""
    if row.schedule.hook:
        return f"{HOOK}{row.schedule.hook}"
    id_ = row.schedule.row
    return next((one.name for one in rows if one.id == id_), "")


def is_end(entry: SlotEntry) -> bool:
    """Whether an entry is the end of a run: where nothing was run, nothing ended."""
    return entry.state in ENDS and bool(entry.session)


def fits(schedule: AfterSchedule, end: RunEnd) -> bool:
    """Whether it makes a row due that follows so."""
    if end.entry.row != schedule.row or end.is_fact != (schedule.on == "change"):
        return False
    if end.is_fact:
        return is_followed(schedule, end.entry.facts)
    has_failed = end.entry.state == "failed"
    return is_end(end.entry) and (schedule.on == "any" or has_failed == (schedule.on == "failure"))


def in_order(ends: Iterable[RunEnd], through: datetime | None) -> list[RunEnd]:
    """Return ends, oldest first, each at an instant of its own after `through`: clocks of several
    machines differ, and two runs may end at the same instant."""
    found: list[RunEnd] = []
    for end in sorted(ends, key=lambda one: (one.is_fact, one.seq)):
        at = end.at if through is None else max(end.at, through + timedelta(microseconds=1))
        found.append(end._replace(at=at))
        through = at
    return found


def due_of_ends(row: TimetableRow, ends: Sequence[RunEnd], after: datetime, until: datetime) -> Due:
    """Return which ends make a row due, after an instant and until another, that included."""
    schedule = row.schedule
    if not isinstance(schedule, AfterSchedule):
        return Due()
    found = [end.at for end in ends if after < end.at <= until and fits(schedule, end)]
    return due_of(found, found)


def noted(entry: SlotEntry, ends: Sequence[RunEnd]) -> SlotEntry:
    """Return an entry of a row that follows, with the end that it is about."""
    end = next((one for one in ends if one.at == entry.due_at), None)
    if end is None:
        return entry
    follows = end.entry.session if entry.state == "running" else ""
    if end.is_fact:
        return replace(entry, followed_fact=end.seq, follows=follows)
    return replace(entry, followed=end.seq, follows=follows)


def words_of(report: TellParentPayload | None) -> str:
    """Say what a run came to, by what it told at its end; None: it told nothing any more.

    >>> words_of(None)
    'It gave no end, or that is kept no more.'
    """
    if report is None:
        return UNTOLD
    if report.state == "failed":
        return f"It failed: {report.content}"[:RESULT_LENGTH_MAX]
    return report.content[:RESULT_LENGTH_MAX] or NOTHING
