"""What happened, in words and in the order in which it did: said, done, found, failed. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from datetime import datetime
from typing import Final, Literal
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace

from vigil.board.kinds.action import ActionView
from vigil.board.kinds.job import JobSummary
from vigil.board.kinds.preference import PreferenceView
from vigil.board.kinds.task import TaskView
from vigil.contracts.session_kinds import SESSION_KINDS
from vigil.contracts.vocabulary import JOBS
from vigil.subjects import Scope, SessionKey

from ...http.wire import SessionSummary, TranscriptMessage
from ...timetable.autonomy import CycleView
from ...timetable.slots import SlotView
from ...work.letters import DeadLetterView

TOLD: Final = "told-"
"""How the ids of events begin by which one session tells another something."""
MANY: Final = 3
"""From so many on, those of a kin are told as one."""
_ENDS: Final = (
    "The task '",
    *{kind.run.partition("{")[0] for kind in SESSION_KINDS.values() if kind.run},
)
"""How it begins that something ended which is a line of its own."""
What = Literal["said", "done", "found", "failed"]
_OUTCOMES: Final[dict[str, tuple[What, str]]] = {
    "success": ("done", ""),
    "failed": ("failed", "Tried, and failed: "),
    "unknown": ("failed", "Perhaps done, it can't be told: "),
    "pending": ("done", "Begun: "),
}
_STATES: Final[dict[str, tuple[What, str]]] = {
    "ran": ("done", "ran"),
    "late": ("done", "ran late"),
    "failed": ("failed", "failed"),
    "missed": ("failed", "was missed, and isn't made up for"),
}


GIVEN_UP: Final = {
    "cortex": "The agent could not take something in",
    "delivery": "A message was not sent",
    "executor": "Something was not carried out",
    "memory": "Something was not kept in memory",
    "scheduler": "Something planned was not begun",
}
"""What a dead letter of a service means."""


class JournalLine(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened."""

    at: datetime
    what: What
    text: str
    page: str
    """Where it is seen whole, below the console's path."""
    why: str = ""
    """The query that asks why; empty: its own page tells."""
    is_tainted: bool = False
    """Whether content from outside had a part in the words."""
    whose: Scope
    """With which agent it was, and for whom."""
    kin: str = ""
    """What those have in common that are told as one if they are many; empty: it stands alone."""
    many: tuple[str, str] = ("", "")
    """What is told of them, before and after how many they are; this one is the newest of them."""

    @property
    def owner(self) -> str:
        return self.whose.owner

    @property
    def agent_id(self) -> str:
        return self.whose.agent


def of_messages(messages: Iterable[TranscriptMessage], key: str) -> Iterator[JournalLine]:
    """Yield what an agent said unasked in a conversation: it carries a tag that says so, or was
    told by another session. That a run or a task ended is a line of its own."""
    whose = SessionKey.parse(key).scope
    for one in messages:
        is_told = (one.caused_by or "").startswith(TOLD) and not one.text.startswith(_ENDS)
        if one.role == "assistant" and (one.tag or is_told):
            yield JournalLine(
                at=one.at,
                what="said",
                text=one.text,
                page=f"/conversations/{key}#m-{one.seq}",
                why=urlencode({"id": one.id, "session": key}),
                is_tainted=one.is_tainted,
                whose=whose,
            )


def of_unread(sessions: Iterable[SessionSummary], home: str) -> Iterator[JournalLine]:
    """Yield conversations in which something is unread, but for the home, which is told itself."""
    for one in sessions:
        if one.is_unread and one.said_at is not None and one.session_key != home:
            yield JournalLine(
                at=one.said_at,
                what="said",
                text=f"Something new in: {one.title or one.session_key}",
                page=f"/conversations/{one.session_key}#end",
                whose=SessionKey.parse(one.session_key).scope,
            )


def of_actions(actions: Iterable[ActionView]) -> Iterator[JournalLine]:
    """Yield what agents did by themselves."""
    for one in actions:
        what, how = _OUTCOMES[one.outcome]
        yield JournalLine(
            at=one.created_at,
            what=what,
            text=how + one.description,
            page=f"/conversations/{one.session_key}" if one.session_key else "",
            is_tainted=one.is_tainted,
            whose=Scope(one.agent_id, one.owner),
        )


def of_tasks(tasks: Iterable[TaskView]) -> Iterator[JournalLine]:
    """Yield the tasks that ended."""
    for one in tasks:
        result = f": {one.result.text}" if one.result is not None and one.result.text else ""
        yield JournalLine(
            at=one.moved_at,
            what="failed" if one.status == "failed" else "done",
            text=f"Task {'failed' if one.status == 'failed' else 'done'}: {one.title}{result}",
            page=f"/tasks/{one.id}",
            is_tainted=one.is_tainted or (one.result is not None and one.result.is_tainted),
            whose=Scope(one.agent_id, one.owner),
        )


def of_slots(slots: Iterable[SlotView], system: Container[str] = ()) -> Iterator[JournalLine]:
    """Yield the runs of rows that ended, or were missed; but for those whose result was said, which
    is a line of its own.

    Args:
        system: ids of the rows that the system keeps: of those only what failed is told.
    """
    for one in slots:
        if one.state not in _STATES:
            continue
        what, how = _STATES[one.state]
        is_said = one.delivery == "told" and one.arrival == "said"
        if what == "done" and (is_said or one.row in system):
            continue
        often = f" ({one.count} times)" if one.count > 1 else ""
        reason = f": {one.reason}" if one.reason else ""
        yield JournalLine(
            at=one.decided_at,
            what=what,
            text=f"{one.name} {how}{often}{reason}",
            page=f"/conversations/{one.session}" if one.session else f"/timetable/{one.row}",
            whose=Scope(one.agent_id, one.owner),
            kin=f"{one.row} {one.state}",
            many=(f"{one.name} {how} ", f" times; the last time{reason}" if reason else " times"),
        )


def of_jobs(jobs: Iterable[JobSummary]) -> Iterator[JournalLine]:
    """Yield the jobs that ended."""
    for one in jobs:
        if one.completed_at is None:
            continue
        failed = f", {one.steps_failed} of {one.steps} steps failed" if one.steps_failed else ""
        error = f": {one.error}" if one.error else ""
        yield JournalLine(
            at=one.completed_at,
            what="failed" if one.status == "failed" else "done",
            text=f"Job {JOBS[one.status].step}: {one.goal or one.skill}{failed}{error}",
            page="/why?" + urlencode({"id": one.id}),
            whose=Scope(one.agent_id, one.user_id),
        )


def of_letters(letters: Iterable[DeadLetterView]) -> Iterator[JournalLine]:
    """Yield what was given up, and waits to be tried again or laid aside."""
    for one in letters:
        what = GIVEN_UP.get(one.service, f"{one.service} gave something up")
        yield JournalLine(
            at=one.at,
            what="failed",
            text=f"{what}: {one.cause}",
            page="/deliveries",
            why=urlencode({"id": one.id}),
            whose=SessionKey.parse(one.session_key).scope,
            kin=f"given up by {one.service} for {one.session_key}",
            many=(f"{what}, ", f" times; the last time: {one.cause}"),
        )


def of_cycles(cycles: Iterable[CycleView]) -> Iterator[JournalLine]:
    """Yield what the newest cycle of each agent found."""
    for one in cycles:
        if one.ended_at is None:
            continue
        for text in one.found:
            yield JournalLine(
                at=one.ended_at,
                what="found",
                text=text,
                page="/autonomy",
                is_tainted=one.is_tainted,
                whose=Scope(one.agent_id, one.owner),
            )


def of_preferences(found: Iterable[PreferenceView], reader: str) -> Iterator[JournalLine]:
    """Yield what was learnt of how the reader likes it, or somebody else."""
    for one in found:
        likes = "you like" if one.owner == reader else f"{one.owner} likes"
        is_not = "not " if one.is_negative else ""
        value = one.value if isinstance(one.value, str) else msgspec.json.encode(one.value).decode()
        yield JournalLine(
            at=one.created_at,
            what="found",
            text=f"Learnt how {likes} it: {one.key}: {is_not}{value}",
            page="/preferences",
            whose=Scope(one.agent_id, one.owner),
            kin=f"likes {one.owner}",
            many=("Learnt ", f" things of how {likes} it, at last {one.key}: {is_not}{value}"),
        )


def gathered(lines: Iterable[JournalLine]) -> list[JournalLine]:
    """Return lines in their order, but of many of a kin the newest alone, which tells of all.

    >>> from datetime import UTC
    >>> def line(hour):
    ...     at = datetime(2026, 11, 28, hour, tzinfo=UTC)
    ...     return JournalLine(at=at, what="done", text=f"ran {hour}", page="", kin="r",
    ...                        many=("ran ", f" times, last {hour}"), whose=Scope("a", "b"))
    >>> [one.text for one in gathered(map(line, (7, 9, 8)))]
    ['ran 3 times, last 9']
    >>> [one.text for one in gathered(map(line, (7, 9)))]
    ['ran 7', 'ran 9']
    """
    found = list(lines)
    counts = Counter(one.kin for one in found if one.kin)
    newest = {one.kin: one for one in sorted(found, key=lambda one: one.at)}
    kept = []
    for one in found:
        if counts[one.kin] < MANY:
            kept.append(one)
        elif one is newest[one.kin]:
            before, after = one.many
            kept.append(replace(one, text=f"{before}{counts[one.kin]}{after}"))
    return kept


def split_at(
    lines: Iterable[JournalLine], since: datetime, new_max: int, old_max: int
) -> tuple[list[JournalLine], int, list[JournalLine]]:
    """Return what is new in its order, how many more of that there were before, and what is older,
    the newest first.

    >>> from datetime import UTC
    >>> def line(hour):
    ...     at = datetime(2026, 11, 28, hour, tzinfo=UTC)
    ...     return JournalLine(at=at, what="done", text="", page="", whose=Scope("a", "b"))
    >>> since = datetime(2026, 11, 28, 8, tzinfo=UTC)
    >>> new, more, old = split_at(map(line, (9, 7, 11, 10, 6)), since, 2, 1)
    >>> [one.at.hour for one in new], more, [one.at.hour for one in old]
    ([10, 11], 1, [7])
    """
    found = sorted(lines, key=lambda one: one.at)
    new = gathered(one for one in found if one.at > since)
    old = gathered(one for one in reversed(found) if one.at <= since)
    return new[-new_max:], max(len(new) - new_max, 0), old[:old_max]
