"""What became of a task, a grant or a memory, which stand in no session's log. Pure.

Each is told from its own records: the revisions of the board, with who made them and why, or what
MEMORIES holds of it. An entry is reduced to the fields of its sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

import msgspec

from vigil.contracts import (
    BoardTask,
    Change,
    Grant,
    GrantUse,
    MemoriesMerged,
    MemoriesReplaced,
    MemoriesUndone,
    MemoryForgotten,
    MemoryRecord,
    MemorySaved,
    TaskStatus,
)
from vigil.contracts.board import BoardAction, BoardGoal, BoardPreference
from vigil.contracts.past.words import PastWords
from vigil.contracts.vocabulary import Ending
from vigil.subjects import SessionKey
from vigil.tasks.lifecycle import OPEN

from .text import clip

E = TypeVar("E", BoardTask, Grant | GrantUse, BoardGoal, BoardPreference, BoardAction)
AGENT: Final = "The agent"
SAVED: Final = "memory.saved"
MADE_OF: Final = "made_of"
"""Of what is saved: the event that it was made of, if it was of one."""
SESSION: Final = "session"
_BY: Final = {"configuration": "vigil.toml"}
_TASKS: Final[dict[TaskStatus, tuple[Ending, str]]] = {
    "pending_approval": ("pending", "The task waits for {they} to let it begin."),
    "backlog": ("pending", "The task is kept for later."),
    "ready": ("pending", "The task is ready, and waits for its turn."),
    "in_progress": ("pending", "A worker is at the task."),
    "done": ("done", "The task is done."),
    "failed": ("failed", "The task failed; it was tried {tries:of time}."),
}
_IMPORTED: Final = (
    "It was said elsewhere, and imported from {origin} at {imported_at:at}: nothing was done about "
    "it here."
)
_REMOVED: Final[tuple[Ending, str]] = ("cancelled", "The task was removed.")
_STANDS: Final = (
    "It stands[ until {expires_at:at}][, for {uses_max:of time} in all]; "
    "it was used {uses:of time}."
)


class KeptFact(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that became of it, and what that was the end of."""

    id: str
    name: str
    """Of its sentence in :mod:`.text`."""
    at: datetime
    by: str
    fields: dict[str, Any]
    ending: Ending
    summary: str
    """The verdict, as a template: if nothing follows."""


def of_past(words: PastWords) -> KeptFact:
    """Tell what was said before a conversation was imported, and that it was."""
    fields: dict[str, Any] = {
        "text": clip(words.text),
        "origin": words.origin,
        "imported_at": words.imported_at,
        "is_tainted": words.is_tainted,
    }
    person = words.by or SessionKey.parse(words.session_key).user
    return KeptFact(
        id=words.id,
        name="message.imported",
        at=words.at,
        by=AGENT if words.role == "agent" else person,
        fields=fields,
        ending="done",
        summary=_IMPORTED,
    )


class Written(msgspec.Struct, Generic[E], frozen=True, kw_only=True):
    """A revision of what the board keeps, without its place."""

    entity: E
    at: datetime
    change: Change


def of_task(revisions: Sequence[Written[BoardTask]], *, is_whole: bool) -> Iterator[KeptFact]:
    """Tell a task's revisions. `is_whole`: the first made it."""
    before: BoardTask | None = None
    for one in revisions:
        task = one.entity
        ending, summary = _TASKS[task.status] if not task.is_removed else _REMOVED
        yield KeptFact(
            id=task.id,
            name=_of_move(before, task, is_made=before is None and is_whole),
            at=one.at,
            by=AGENT if one.change.by == task.agent else one.change.by,
            fields={
                "title": task.title,
                "status": task.status,
                "tries": task.tries,
                "before": "" if before is None else before.status,
                "why": clip(one.change.why),
                "is_tainted": task.is_tainted,
            },
            ending=ending,
            summary=summary,
        )
        before = task


def _of_move(before: BoardTask | None, task: BoardTask, *, is_made: bool) -> str:
    if is_made:
        return "task.made:board"
    if task.is_removed:
        return "task.removed"
    if before is not None and before.status == task.status:
        return "task.changed:board"
    if task.status == "in_progress":
        return "task.begun"
    if before is not None and before.status == "in_progress" and task.status not in OPEN:
        return "task.ended"
    return "task.moved"


def of_grant(revisions: Sequence[Written[Grant | GrantUse]]) -> Iterator[KeptFact]:
    """Tell a grant's revisions and its uses, in the order of the board."""
    grant: Grant | None = None
    uses = 0
    for one in revisions:
        found = one.entity
        if isinstance(found, GrantUse):
            uses, name = found.uses, "grant.used"
            fields: dict[str, Any] = {"tool": found.tool, "session": found.session_key}
            by = AGENT
        elif isinstance(found, Grant):
            name = _of_grant(grant, found)
            grant, fields, by = found, _allowed(found), _BY.get(one.change.by, one.change.by)
        fields |= {"uses": uses, "why": clip(one.change.why)}
        ending, summary = _standing(grant, uses)
        yield KeptFact(
            id=found.id,
            name=name,
            at=one.at,
            by=by,
            fields=_fields(grant) | fields,
            ending=ending,
            summary=summary,
        )


def _of_grant(before: Grant | None, grant: Grant) -> str:
    if grant.revoked_at is not None:
        return "grant.revoked"
    return "grant.made" if before is None else "grant.changed"


def _allowed(grant: Grant) -> dict[str, Any]:
    covers = msgspec.json.encode(grant.constraints).decode()
    return {"tool": grant.tool, "session": grant.session_key, "covers": clip(covers)}


def _fields(grant: Grant | None) -> dict[str, Any]:
    """What the verdict says of a grant as it was then."""
    if grant is None:
        return {"expires_at": None, "uses_max": 0}
    return {"expires_at": grant.expires_at, "uses_max": grant.uses_max}


def _standing(grant: Grant | None, uses: int) -> tuple[Ending, str]:
    if grant is not None and grant.revoked_at is not None:
        return "cancelled", "It was revoked, after {uses:of use}."
    if grant is not None and 0 < grant.uses_max <= uses:
        return "done", "It is used up, after {uses:of use}."
    return "pending", _STANDS


def of_memory(record: MemoryRecord, id_: str) -> KeptFact | None:
    """Tell what a record of MEMORIES did to a memory; None: nothing that is told.

    It isn't quoted: what was forgotten, or is contained in what was, is shown nowhere.
    """
    match record:
        case MemorySaved(memory=memory) | MemoriesMerged(memory=memory) if memory.id == id_:
            merged = record.merged_ids if isinstance(record, MemoriesMerged) else ()
            made_of = "" if merged else next(iter(memory.provenance), "")
            fields: dict[str, Any] = {
                "type": memory.type,
                "source": memory.source,
                "is_tainted": memory.is_tainted,
                "merged": len(merged),
                MADE_OF: made_of,
            }
            return _remembered(record, id_, SAVED, fields, is_kept=True)
        case MemoriesMerged(merged_ids=ids) | MemoriesReplaced(memory_ids=ids) if id_ in ids:
            if isinstance(record, MemoriesMerged):
                name, other = "memory.merged", record.memory.id
            else:
                name, other = "memory.replaced", record.by_id
            return _remembered(record, id_, name, {"other": other})
        case MemoryForgotten(memory_ids=ids) if id_ in ids:
            return _remembered(record, id_, "memory.forgotten", {"reason": record.reason})
        case MemoriesUndone(memory_ids=ids) if id_ in ids:
            return _remembered(record, id_, "memory.undone", {"source": record.source})
        case MemoriesUndone(restored_ids=ids) if id_ in ids:
            return _remembered(record, id_, "memory.restored", {}, is_kept=True)
    return None


def memory_ids(record: MemoryRecord) -> tuple[str, ...]:
    """Return the ids of the memories to which a record did something that is told."""
    match record:
        case MemorySaved(memory=memory):
            return (memory.id,)
        case MemoriesMerged(memory=memory, merged_ids=ids):
            return (memory.id, *ids)
        case MemoriesReplaced(memory_ids=ids) | MemoryForgotten(memory_ids=ids):
            return ids
        case MemoriesUndone(memory_ids=ids, restored_ids=restored):
            return (*ids, *restored)
    return ()


def _remembered(
    record: MemoryRecord, id_: str, name: str, fields: dict[str, Any], *, is_kept: bool = False
) -> KeptFact:
    kind, _, who = record.by.partition(":")
    return KeptFact(
        id=id_,
        name=name,
        at=record.at,
        by=who if kind == "user" else AGENT,
        fields=fields | {SESSION: who if kind == "session" else ""},
        ending="done" if is_kept else "cancelled",
        summary="It is remembered." if is_kept else "It stands no more.",
    )
