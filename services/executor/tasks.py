"""Tasks on the board, changed for the loop that asked for it (LOOPS L-15).

A change is a compare-and-set on the revision that the loop read; a new task is stored if there is
room. Whatever comes of it is the result of the loop's call, a conflict, too, so that it decides
anew. The revision that a change made names the effect, so a repeat finds it in the history.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec.structs import replace

from vigil import crash
from vigil.board.kept import TASKS, BoundReached, KeptBoard, Revision
from vigil.contracts import BoardChange, BoardTask, Change, encode
from vigil.errors import InvalidInput, WrongLastSequence
from vigil.observe import trace
from vigil.runtime import Context
from vigil.subjects import SessionKey
from vigil.tasks import lifecycle
from vigil.teams import holding
from vigil.worker import turns

BOARD: Final = "board"
CONFLICT: Final = (
    "Not changed: it was changed since you read it, and is {status} now. Look again, and decide."
)


class TaskDesk:
    """Changes tasks."""

    def __init__(self, context: Context) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._tasks = KeptBoard(context.bus, TASKS)

    async def change(self, key: SessionKey, effect: BoardChange, task: BoardTask) -> None:
        """Make or change a task, and tell the loop what came of it; may be repeated.

        Raises:
            InvalidInput: it's somebody else's.
            Unavailable: try again later.
        """
        if (task.owner, task.agent) != (key.user, key.agent):
            raise InvalidInput("task", f"{task.id} is not of the same person and agent")
        try:
            text, is_error = told(await self._stored(key, effect, task)), False
        except BoundReached as error:
            text, is_error = f"Not made: {error}.", True
        except WrongLastSequence:
            text, is_error = await self._conflict(key, task), True
        crash.point("executor.task.changed")
        event = turns.result_of(
            BOARD, key, effect.id, text, now=self._clock.now(), is_error=is_error
        )
        headers = {trace.HEADER: trace.passed_on(trace.current.get())}
        await self._bus.publish(
            key.in_event("tool_result"), encode(event), headers, msg_id=event.id
        )

    async def _stored(
        self, key: SessionKey, effect: BoardChange, task: BoardTask
    ) -> Revision[BoardTask]:
        """Return the revision that the effect makes, or made. Raises: WrongLastSequence."""
        now, expect = self._clock.now(), effect.payload.expect
        whose = key.scope
        change = Change(by=key.agent, why=effect.payload.why, cause=effect.id)
        if not expect:
            among = holding(key.user, key.agent)
            return await self._tasks.create(lambda _: _at(task, now), among, change, now)
        found = await self._tasks.find([whose], task.id)
        made = None if found is None else await self._made_by(effect.id, found)
        if made is not None:
            return made
        if found is None or found.number != expect:
            raise WrongLastSequence(f"{task.id}: revision {expect} is not the newest")
        task = _at(task, now) if task.status != found.entity.status else task
        is_reopened = task.status in lifecycle.OPEN and found.entity.status not in lifecycle.OPEN
        store = self._tasks.reopen if is_reopened else self._tasks.replace
        return await store(expect, task, change, now)

    async def _made_by(
        self, effect_id: str, found: Revision[BoardTask]
    ) -> Revision[BoardTask] | None:
        history = await self._tasks.history(found)
        return next((one for one in history if one.change.cause == effect_id), None)

    async def _conflict(self, key: SessionKey, task: BoardTask) -> str:
        found = await self._tasks.find([key.scope], task.id)
        return CONFLICT.format(status="gone" if found is None else found.entity.status)


def _at(task: BoardTask, now: datetime) -> BoardTask:
    """Return the task as it comes into its status now."""
    return replace(task, moved_at=now)


def told(made: Revision[BoardTask]) -> str:
    """Return what a loop is told of a task that it made or changed."""
    task = made.entity
    if task.status == "pending_approval":
        return (
            f"{task.id} waits for the person: `vigil tasks approve {task.id[:8]}` lets it begin. "
            "Tell them."
        )
    return f"{task.id} is {task.status}, its priority is {task.priority}."
