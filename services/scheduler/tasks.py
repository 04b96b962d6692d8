"""Workers for the tasks of the board: one at a time for each person and agent (SPEC C-8).

Only the active scheduler begins one: it moves the task, by a compare-and-set that names the worker,
and then stores that session's first event, if there is none. Whoever is active next finds the task
in progress and stores the event again, so each move begins one worker. A worker that a task was
taken from is told to end in the same way: to begin, if it never did, and to end. The next task
begins once that end is on the board, which is the executor's to write.

How a task goes on is decided in `vigil.tasks.lifecycle`; nothing here outlives the term.
"""

from __future__ import annotations

from collections import defaultdict, deque
from datetime import datetime
from functools import partial
from typing import Final

import structlog

from vigil import crash
from vigil.board.kept import KeptBoard
from vigil.board.kinds.task import TASKS
from vigil.bus.bus import Message
from vigil.clock import PACE_S
from vigil.contracts import BoardTask, Change, Control, ControlPayload, Start, encode
from vigil.errors import VigilError, WrongLastSequence
from vigil.observe import trace
from vigil.runtime import Context
from vigil.subjects import ANYBODY, Scope, SessionKey, board_of, token_of
from vigil.tasks import lifecycle
from vigil.tasks.lifecycle import ReadTask

from .promotion import PauseSwitch
from .timetable.agenda import QUIET_S

log = structlog.get_logger("vigil.scheduler")

STREAM: Final = "BOARD"
POLL_S: Final = 1.0
"""How soon it's tried again what failed or was paused."""
WHY_ENDED: Final = "its task was taken from it"


class Pickup:
    """Begins and ends workers, for one term."""

    def __init__(self, context: Context, pause: PauseSwitch) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._pause = pause
        self._board = KeptBoard(context.bus, TASKS)
        self._tasks: dict[str, ReadTask] = {}
        """Those that are ready or held, by id."""
        self._unasked: defaultdict[tuple[str, str], deque[datetime]] = defaultdict(
            partial(deque, maxlen=lifecycle.UNASKED_MAX)
        )
        """When workers began for tasks that nobody asked for, by agent and owner."""
        self._begun: set[str] = set()
        """Workers of held tasks whose first event is stored."""
        self._ended: set[str] = set()
        """Workers of held tasks that were told to end."""

    async def run(self) -> None:
        """Follow the board, until cancelled. Raises: Unavailable, BusError."""
        follower = await self._bus.follow(STREAM, [board_of(ANYBODY, TASKS.name)], 0)
        is_behind = False
        try:
            while True:
                message = await follower.next_within(
                    min(POLL_S, PACE_S.get()) if self._tasks else QUIET_S
                )
                if message is not None:
                    self._take_in(message)
                    is_behind = message.pending > 0
                if not is_behind:
                    await self._move_all()
        finally:
            await follower.close()

    def _take_in(self, message: Message) -> None:
        """Know a task as it is now; what can't be read is nobody's turn."""
        found = self._board.read(message)
        id_ = message.subject.rpartition(".")[2]
        known = self._tasks.get(id_)
        if known is not None and known.revision >= message.seq:
            return
        if known is not None and found is not None:
            self._note_begun(known, found.entity)
        self._tasks.pop(id_, None)
        if found is not None and (
            found.entity.status == "ready" or lifecycle.is_held(found.entity)
        ):
            self._tasks[id_] = ReadTask(
                task=found.entity, revision=found.number, by=found.change.by
            )
        now_held = self._tasks.get(id_)
        if known is not None and (now_held is None or now_held.task.worker != known.task.worker):
            # What was done for workers that are over is forgotten, or a term would remember each.
            self._begun.discard(known.task.worker)
            self._ended.discard(known.task.worker)

    def _note_begun(self, before: ReadTask, task: BoardTask) -> None:
        """Know when a worker began for what nobody asked for."""
        is_begun = before.task.status == "ready" and task.status == "in_progress"
        if is_begun and lifecycle.is_unasked(before):
            self._unasked[task.agent, task.owner].append(task.moved_at)

    async def _move_all(self) -> None:
        """Do what is to be done for each; what fails is tried again at the next look."""
        held = [one.task for one in self._tasks.values() if lifecycle.is_held(one.task)]
        try:
            for task in held:
                await self._begin_worker(task)
                if task.is_stopping:
                    await self._end_worker(task)
            now = self._clock.now()
            for one in lifecycle.next_of(self._tasks.values(), now, self._unasked):
                if not self._pause.is_on_for(Scope(one.task.agent, one.task.owner), now):
                    await self._begin(one)
        except VigilError as error:
            log.info("not now", action="scheduler.task", error=str(error))

    async def _begin(self, one: ReadTask) -> None:
        """Give a task that is ready to a new worker. A newer revision of it comes by itself."""
        if self._pause.is_erasing(one.task.owner):
            return
        now = self._clock.now()
        task = lifecycle.begun(one.task, str(worker_of(one)), now)
        try:
            kept = await self._board.replace(one.revision, task, Change(by="scheduler"), now)
        except WrongLastSequence:
            del self._tasks[task.id]
            return
        self._note_begun(one, task)
        self._tasks[task.id] = ReadTask(task=task, revision=kept.number)
        crash.point("scheduler.task.moved")
        await self._begin_worker(task)

    async def _begin_worker(self, task: BoardTask) -> None:
        """Store the worker's first event, unless it's there."""
        if task.worker in self._begun:
            return
        event = start_of(task, self._clock.now())
        worker = SessionKey.parse(task.worker)
        try:
            await self._bus.publish(
                worker.in_event("control"),
                encode(event),
                trace.new_headers(),
                expect=0,
                expect_subject=worker.in_all,
            )
        except WrongLastSequence:
            log.info("started before", action="scheduler.task", session=task.worker)
        self._begun.add(task.worker)
        crash.point("scheduler.task.begun")

    async def _end_worker(self, task: BoardTask) -> None:
        """Tell a worker that it has no task any more. The event of a repeat changes nothing."""
        if task.worker in self._ended:
            return
        event, worker = end_of(task, self._clock.now()), SessionKey.parse(task.worker)
        await self._bus.append(
            worker.in_event("control"),
            encode(event),
            trace.new_headers(),
            among=worker.in_all,
            msg_id=event.id,
        )
        self._ended.add(task.worker)
        crash.point("scheduler.task.ended")


def worker_of(one: ReadTask) -> SessionKey:
    """Return the session that a task is given to: each revision that is ready has another."""
    key = SessionKey(one.task.owner, one.task.agent, "")
    return key.of_kind("worker", token_of("task", one.task.id, str(one.revision)))


def start_of(task: BoardTask, now: datetime) -> Control:
    """Build the first event of a worker: it knows the task and nothing else."""
    name = _name_of(task)
    start = Start(
        prompt=f"{task.title}\n\n{task.description}".strip(),
        task_id=task.id,
        root_id=f"start-{name}",
        depth=1,
        is_ordered=task.is_ordered and not task.is_tainted,
        is_tainted=task.is_tainted,
        row=task.row,
        row_tokens=task.row_tokens,
        goal=task.goal,
    )
    return Control(
        id=f"start-{name}",
        session_key=task.worker,
        created_at=now,
        payload=ControlPayload(op="start", start=start),
    )


def end_of(task: BoardTask, now: datetime) -> Control:
    """Build the event that ends a worker."""
    return Control(
        id=f"cancel-{_name_of(task)}",
        session_key=task.worker,
        created_at=now,
        payload=ControlPayload(op="cancel", reason=WHY_ENDED),
    )


def _name_of(task: BoardTask) -> str:
    return task.worker.rpartition("-")[2]
