"""The lifecycle of a task: which moves there are, and what each does to the record (SPEC C-8).

Who may make a move is for the caller to say; whether there is such a move is said here alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, get_args

import msgspec
from msgspec.structs import replace

from ..contracts import BoardTask, TaskPriority, TaskResult, TaskStatus
from ..errors import InvalidInput
from ..subjects import SessionKey

MOVES: Final[dict[TaskStatus, tuple[TaskStatus, ...]]] = {
    "pending_approval": ("ready", "backlog"),
    "backlog": ("ready",),
    "ready": ("in_progress", "backlog"),
    "in_progress": ("done", "failed", "ready", "backlog"),
    "done": ("ready", "backlog"),
    "failed": ("ready", "backlog"),
}
"""From each status to those that it may go to."""
BY_HAND: Final = {
    status: tuple(to for to in moves if to != "in_progress") for status, moves in MOVES.items()
}
"""Where a person may move a task: only a worker takes it in progress."""
DAY: Final = timedelta(days=1)
NEVER_BEGUN: Final[Mapping[tuple[str, str], Sequence[datetime]]] = MappingProxyType({})
OPEN: Final[tuple[TaskStatus, ...]] = ("pending_approval", "backlog", "ready", "in_progress")
"""What counts towards the bound of an owner."""
TRIES_MAX: Final = 3
"""The first try of a task, and two more."""
STOPPING_MAX: Final = timedelta(minutes=10)
"""A worker that was told to end and hasn't for so long is lost, and holds up no other task."""
UNASKED_MAX: Final = 20
"""Workers a day, of a person and agent, for tasks that no person had a hand in: each may make the
next such task, and so on without an end."""
UNASKED_APART: Final = timedelta(hours=1)
"""From then on."""
RESULT_LENGTH_MAX: Final = 2000
"""Characters that are kept of what a worker said last."""


def moves_of(task: BoardTask) -> tuple[TaskStatus, ...]:
    """Return where a person may move it."""
    return BY_HAND[task.status]


def check_move(before: TaskStatus, after: TaskStatus) -> None:
    """Raises: InvalidInput, naming both and what is allowed.

    >>> check_move("backlog", "done")
    Traceback (most recent call last):
    vigil.errors.InvalidInput: status: can't go from backlog to done; it may go to ready
    """
    if after not in MOVES[before]:
        allowed = " or ".join(MOVES[before])
        reason = f"can't go from {before} to {after}; it may go to {allowed}"
        raise InvalidInput("status", reason)


def moved(task: BoardTask, to: TaskStatus, now: datetime) -> BoardTask:
    """Return the task after a move by hand: made ready again, all its tries are left.

    A worker that it is taken from is to end; until then no other of that person and agent begins.

    Raises:
        InvalidInput: there is no such move, or only a worker makes it.
    """
    check_move(task.status, to)
    if to == "in_progress":
        raise InvalidInput("status", "in_progress is where only a worker takes it; make it ready")
    return replace(
        task,
        status=to,
        tries=0 if to == "ready" else task.tries,
        is_stopping=task.is_stopping or task.status == "in_progress",
        moved_at=now,
    )


def removed(task: BoardTask) -> BoardTask:
    """Return the task as one that nobody wants any more.

    Raises:
        InvalidInput: a worker has it, or may have it at any moment.
    """
    if task.status in ("ready", "in_progress"):
        raise InvalidInput("status", f"is {task.status}: move it to backlog first")
    if task.is_stopping:
        raise InvalidInput("status", "its worker is still to end: try again")
    return replace(task, is_removed=True)


def is_open(task: BoardTask) -> bool:
    """Whether it counts towards the bound of its owner."""
    return task.status in OPEN and not task.is_removed


def begun(task: BoardTask, worker: str, now: datetime) -> BoardTask:
    """Return the task as a worker has it. Raises: InvalidInput, it isn't ready."""
    check_move(task.status, "in_progress")
    return replace(
        task,
        status="in_progress",
        tries=task.tries + 1,
        worker=worker,
        is_stopping=False,
        moved_at=now,
    )


def ended(task: BoardTask, result: TaskResult, *, is_done: bool) -> BoardTask:
    """Return the task after its worker ended: done, ready for another try, or failed.

    One that was taken from the worker meanwhile stays where it was put.
    """
    if task.status != "in_progress":
        return replace(task, is_stopping=False)
    to: TaskStatus = "done" if is_done else "ready" if task.tries < TRIES_MAX else "failed"
    check_move(task.status, to)
    text = result.text if len(result.text) <= RESULT_LENGTH_MAX else _cut(result.text)
    return replace(task, status=to, result=replace(result, text=text), moved_at=result.at)


def _cut(text: str) -> str:
    return text[: RESULT_LENGTH_MAX - 1] + "…"


def rank(task: BoardTask) -> tuple[int, datetime, str]:
    """Return what tasks are put in order by: the more urgent before, and then the older."""
    return get_args(TaskPriority).index(task.priority), task.created_at, task.id


class ReadTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task as somebody read it: a change of it names the revision."""

    task: BoardTask
    revision: int
    by: str = ""
    """Who made that revision; empty: it isn't known."""


def is_unasked(one: ReadTask) -> bool:
    """Whether no person had a hand in it: a session that works by itself made it, as a cycle or the
    worker of another task, and nobody let it begin. What a person ordered once is no order for all
    that follows from it."""
    if one.task.created_by != "agent" or not one.task.session_key:
        return False
    maker = SessionKey.parse(one.task.session_key)
    return maker.is_system and one.by in (maker.agent, one.task.agent)


def may_begin_unasked(begun: Sequence[datetime], now: datetime) -> bool:
    """Whether a worker may begin for a task that nobody asked for.

    Args:
        begun: when others of the same person and agent were begun, the oldest first.
    """
    lately = [at for at in begun if timedelta(0) <= now - at < DAY]
    return len(lately) < UNASKED_MAX or now - lately[-1] >= UNASKED_APART


def next_of(
    tasks: Iterable[ReadTask],
    now: datetime,
    begun: Mapping[tuple[str, str], Sequence[datetime]] = NEVER_BEGUN,
) -> list[ReadTask]:
    """Return the tasks whose turn it is: of each person and agent the first that is ready, unless
    a worker has one of theirs, or is still to end and may yet.

    Args:
        begun: when workers began for tasks that nobody asked for, by agent and owner.
    """
    there = list(tasks)
    busy = {_whose(one) for one in there if _is_busy(one.task, now)}
    first: dict[tuple[str, str], ReadTask] = {}
    for one in sorted(there, key=lambda one: rank(one.task)):
        whose = _whose(one)
        may = not is_unasked(one) or may_begin_unasked(begun.get(whose, ()), now)
        if one.task.status == "ready" and whose not in busy and may:
            first.setdefault(whose, one)
    return list(first.values())


def is_held(task: BoardTask) -> bool:
    """Whether a worker has it, or had it and hasn't ended."""
    return task.status == "in_progress" or task.is_stopping


def _is_busy(task: BoardTask, now: datetime) -> bool:
    is_lost = task.status != "in_progress" and now - task.moved_at > STOPPING_MAX
    return is_held(task) and not is_lost


def _whose(one: ReadTask) -> tuple[str, str]:
    return one.task.agent, one.task.owner
