"""Tasks on the board, ended with their workers (LOOPS L-15).

The revision that an end made names the effect, so a repeat finds it in the history.
"""

from __future__ import annotations

import contextlib
from typing import Final

from msgspec.structs import replace

from vigil import crash
from vigil.board.kept import KeptBoard, Revision
from vigil.board.kinds.task import TASKS
from vigil.contracts import (
    BoardTask,
    Change,
    TaskResult,
    TellParent,
    ToldPayload,
    encode,
)
from vigil.errors import Unavailable, WrongLastSequence
from vigil.minds import OWN_TASK, mind_of
from vigil.observe import trace
from vigil.runtime import Context
from vigil.settings.homes import homes_of
from vigil.settings.switches import has_mind
from vigil.subjects import SessionKey, check_part
from vigil.tasks import lifecycle
from vigil.teams import TEAM

from .. import work
from .made import made_by

TRIES_MAX: Final = 20


class TaskEnds:
    """Ends tasks."""

    def __init__(self, context: Context) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._config = context.settings.config
        self._tasks = KeptBoard(context.bus, TASKS)

    async def end(self, key: SessionKey, effect: TellParent, task_id: str) -> None:
        """Write down how a task's worker ended, and tell the person if that is its end; may be
        repeated.

        What holds is the claim in the task, not a revision: the one that it was given to ends it,
        whatever was changed of it since, and nobody else does.

        Raises:
            Unavailable: try again later.
        """
        made = await self._ended(key, effect, task_id)
        crash.point("executor.task.ended")
        if made is not None and is_end(key, made.entity):
            message = report_of(key, made.entity)
            giver = giver_of(key, made.entity)
            for home in homes_of(self._config, giver):
                await self._notify(home, effect, message)
            if has_mind(self._config, key.agent):
                mind = mind_of(key.scope)
                is_own = made.entity.session_key == str(mind)
                own = replace(message, what=OWN_TASK) if is_own else message
                await self._notify(mind, effect, own)

    async def _notify(self, home: SessionKey, effect: TellParent, message: ToldPayload) -> None:
        event = work.notification_of(home, effect.id, message, now=self._clock.now())
        with contextlib.suppress(WrongLastSequence):  # told before
            await self._bus.publish(
                home.in_event(f"told.{effect.id}"), encode(event), _headers(), expect=0
            )

    async def _ended(
        self, key: SessionKey, effect: TellParent, task_id: str
    ) -> Revision[BoardTask] | None:
        """Return the revision that a worker's end makes, or made; None: the task isn't its own."""
        payload = effect.payload
        for _ in range(TRIES_MAX):
            found = await self._tasks.find([key.scope], check_part("task_id", task_id))
            made = None if found is None else await made_by(self._tasks, effect.id, found)
            if made is not None or found is None or not is_held_by(key, found.entity):
                return made
            now = self._clock.now()
            result = TaskResult(
                text=payload.content, at=now, by=str(key), is_tainted=payload.is_tainted
            )
            task = lifecycle.ended(found.entity, result, is_done=payload.state == "done")
            try:
                return await self._tasks.replace(
                    found.number, task, Change(by=key.agent, cause=effect.id), now
                )
            except WrongLastSequence:
                continue
        raise Unavailable(f"{task_id}: others change it all the time")


def giver_of(key: SessionKey, task: BoardTask) -> SessionKey:
    """Return in whose home it's told how a task ended: its worker's agent's, or that of another
    agent of the same person's, who handed it over."""
    maker = SessionKey.parse(task.session_key) if task.session_key else key
    return maker if maker.user == key.user else key


def is_held_by(key: SessionKey, task: BoardTask) -> bool:
    """Whether a session works on the task, or is to end because it was taken from it."""
    return task.worker == str(key) and lifecycle.is_held(task)


def is_end(key: SessionKey, task: BoardTask) -> bool:
    """Whether the task ended with this worker, and wasn't put there by somebody else."""
    result = task.result
    return task.status not in lifecycle.OPEN and result is not None and result.by == str(key)


def report_of(key: SessionKey, task: BoardTask) -> ToldPayload:
    """Return what the person is told of a task that ended.

    What content from outside had a part in is not quoted, so their home isn't influenced by it; nor
    what members wrote for their team, since it orders nothing in another's conversation.
    """
    text = task.result.text if task.result is not None else ""
    is_outside = task.is_tainted or (task.result is not None and task.result.is_tainted)
    ended = "is done" if task.status == "done" else f"failed after {task.tries} tries"
    is_quotable = not is_outside and key.user != TEAM
    if is_quotable:
        text = f"The task {task.title!r} {ended}." + (f"\n\n{text}" if text else "")
    else:
        why = "; outside content had a part" if is_outside else ""
        text = f"A task {ended}{why} (`vigil tasks show {task.id[:8]}`)."
    return ToldPayload(
        origin=str(key),
        text=f"{key.agent}: {text}" if key.user == TEAM else text,
        what="task",
        title=task.title if is_quotable else "",
        is_ordered=task.is_ordered,
    )


def _headers() -> dict[str, str]:
    return {trace.HEADER: trace.passed_on(trace.current.get())}
