"""What becomes of records that are taken from an export into another home, or by another person.
Pure.

What somebody vouches for keeps the standing that it had, and never gets a higher one. Else it is
content from outside, whatever it says of itself: memories and goals are marked so, nobody stands
behind a task, what would begin by itself rests until a person lets it, and nothing happens to
memories that are here already.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from ..contracts import MemoriesAssociated, MemoriesMerged, MemoryRecord, MemorySaved
from ..contracts.board import BoardGoal, BoardPreference, BoardTask, TimetableRow
from ..errors import InvalidInput
from ..subjects import Scope

Entity = BoardTask | BoardGoal | BoardPreference | TimetableRow
NOT_TAKEN: Final = {
    "SESSIONS": "what was decided in conversations is to read: it names places of the log there",
    "SYSTEM": "what agents did by themselves there is to read",
    "SLOTS": "what became of times that are past",
    "MAILS": "a mailbox is read anew",
    "DEAD": "can't be tried again here",
    "KV_BUDGETS": "was spent there",
}
"""Which parts stay in the export, and why."""
NO_AUTHORITY: Final = "lets something be done: decide it here again"
_SESSIONS: Final = frozenset({"session_key", "target", "worker"})
_MEMORY_IDS: Final = frozenset(
    {"memory_ids", "merged_ids", "restored_ids", "by_id", "from_id", "to_id", "provenance"}
)


class StaysBehind(InvalidInput):
    """By a rule: it is fine, and isn't for another home."""


def renamed(value: Any, user: str, to: str, key: str = "") -> Any:
    """Return a record as JSON in which a person is called otherwise.

    >>> renamed({"owner": "ann", "by": "session:ann:vigil:t1", "text": "ann"}, "ann", "bob")
    {'owner': 'bob', 'by': 'session:bob:vigil:t1', 'text': 'ann'}
    """
    if isinstance(value, dict):
        return {name: renamed(one, user, to, name) for name, one in value.items()}
    if isinstance(value, list):
        return [renamed(one, user, to, key) for one in value]
    return _name(value, user, to, key) if isinstance(value, str) else value


def _name(value: str, user: str, to: str, key: str) -> str:
    if key in ("owner", "by") and value == user:
        return to
    if key == "by" and value == f"user:{user}":
        return f"user:{to}"
    start = f"session:{user}:" if key == "by" else f"{user}:"
    if (key == "by" or key in _SESSIONS) and value.startswith(start):
        return start.replace(user, to, 1) + value.removeprefix(start)
    return value


def with_new_ids(record: Any, ids: Collection[str], to: str, key: str = "") -> Any:
    """Return a memory's record as JSON with ids of the new owner: an id names one memory only."""
    if isinstance(record, dict):
        is_memory = key == "memory"
        return {
            name: new_id(to, one)
            if is_memory and name == "id"
            else with_new_ids(one, ids, to, name)
            for name, one in record.items()
        }
    if isinstance(record, list):
        return [with_new_ids(one, ids, to, key) for one in record]
    return new_id(to, record) if key in _MEMORY_IDS and record in ids else record


def strange_ids(record: Any, ids: Collection[str], key: str = "") -> set[str]:
    """Return the memories that a record would do something to and that aren't of the same export.

    >>> strange_ids({"op": "forget", "memory_ids": ["a", "b"]}, {"a"})
    {'b'}
    """
    if isinstance(record, dict):
        found = [strange_ids(one, ids, name) for name, one in record.items()]
        return set().union(*found)
    if isinstance(record, list):
        return set().union(*(strange_ids(one, ids, key) for one in record))
    is_named = key in _MEMORY_IDS and key != "provenance"  # it does nothing to its origins
    return {record} if is_named and record not in ids else set()


def new_id(to: str, id_: str) -> str:
    """Return what is called so with its new owner: 32 hex digits."""
    return hashlib.sha256(f"{to}\n{id_}".encode()).hexdigest()[:32]


def memory(record: MemoryRecord, whose: Scope, *, is_trusted: bool) -> MemoryRecord:
    """Return a record of a memory as it is to be stored. Raises: InvalidInput."""
    if record.owner != whose.owner or record.agent != whose.agent:
        raise StaysBehind("owner", "is somebody else's, as a memory of a team")
    if isinstance(record, MemoriesAssociated):
        return replace(record, through=0)  # a place in the log that it was on
    if isinstance(record, MemorySaved | MemoriesMerged) and not is_trusted:
        return replace(record, memory=replace(record.memory, is_tainted=True))
    return record


def again(record: MemoryRecord, to: str, forgotten: Collection[str]) -> MemoryRecord:
    """Return the record of a memory that is taken in although it was forgotten: what was forgotten
    stays so, and this is another that says the same."""
    if not isinstance(record, MemorySaved) or record.memory.id not in forgotten:
        return record
    id_ = record.memory.id
    while id_ in forgotten:
        id_ = new_id(to, id_)
    return replace(record, id=new_id(id_, record.id), memory=replace(record.memory, id=id_))


def entity(found: object, now: datetime, *, is_trusted: bool) -> Entity:
    """Return what stood on a board as it is to stand on this one. Raises: InvalidInput."""
    if getattr(found, "is_removed", False):
        raise StaysBehind("kind", "was removed")
    match found:
        case TimetableRow():
            return _row(found, now, is_trusted=is_trusted)
        case BoardTask():
            return _task(found, is_trusted=is_trusted)
        case BoardGoal() if is_trusted:
            return found
        case BoardGoal():
            status = "paused" if found.status == "active" else found.status
            return replace(found, is_tainted=True, status=status)
        case BoardPreference() if is_trusted:
            return found
        case BoardPreference():
            raise StaysBehind("preference", "is believed as said: vouch for it with --trusted")
        case _:
            raise StaysBehind("kind", NO_AUTHORITY)


def _row(row: TimetableRow, now: datetime, *, is_trusted: bool) -> TimetableRow:
    if row.is_of_system:
        raise StaysBehind("row", "follows from the configuration")
    taken = replace(row, scheduled_at=now)  # what is past isn't missed here
    return taken if is_trusted else replace(taken, is_ordered=False, is_enabled=False)


def _task(task: BoardTask, *, is_trusted: bool) -> BoardTask:
    is_over = task.status in ("done", "failed")
    status = task.status if is_over or (is_trusted and task.status == "ready") else "backlog"
    # Its worker, and the run that made it, are nowhere.
    taken = replace(task, status=status, worker="", is_stopping=False, row="", row_tokens=0)
    return taken if is_trusted else replace(taken, is_ordered=False, is_tainted=True)
