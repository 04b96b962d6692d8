"""Tasks whose scheduler, cortex, executor and broker are killed as workers do them (C-8, X-5)."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from tests.chaos.killable import killable, steps_of
from tests.support.board_tasks import task_of
from tests.support.pauses import pauses
from vigil.board.kept import KeptBoard, Revision
from vigil.board.kinds.task import TASKS
from vigil.bus.bus import Bus
from vigil.contracts import BoardTask, Change, Control, decode_event
from vigil.errors import Unavailable, WrongLastSequence
from vigil.subjects import ANYBODY, Scope, SessionKey, board_of, token_of
from vigil.tasks import lifecycle

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("halved_times")]

POINTS: Final = ("scheduler.task.moved", "scheduler.task.begun", "scheduler.task.ended")
PLAN: Final = {
    "scheduler": POINTS,
    "executor": ("executor.task.ended",),
    "cortex": ("cortex.event.read", "cortex.commit.before", "cortex.commit.after"),
}
PATIENCE_S: Final = 60.0
ANN: Final = SessionKey("ann", "vigil", "main")
WHOSE: Final = Scope("vigil", "ann")
TIMES: Final = {
    "VIGIL_EXECUTOR__SANDBOX": "off",
    "VIGIL_MODEL__TOOL_TIMEOUT_S": "100",
    "VIGIL_MODEL__REHEARSAL_WORD_MS": "25",  # so that there is something to be cancelled
}


class Person:
    """Somebody who has tasks done, and takes every other one back while it is worked on."""

    def __init__(self, bus: Bus) -> None:
        self._board = KeptBoard(bus, TASKS)
        self.tasks: list[str] = []

    async def go_on(self) -> None:
        """Have one more task done, or taken back; wait until nobody works on it any more."""
        number = len(self.tasks)
        now = datetime.now(UTC)
        id_ = token_of("task", str(number))
        task = task_of(id=id_, title=f"Look into thing {number}", created_at=now, moved_at=now)
        await self._until_stored(task)
        self.tasks.append(id_)
        pause_s = pauses()
        while not self._is_over(await self._now(id_)):
            if number % 2:
                await self._take_back(id_)
            await asyncio.sleep(next(pause_s))

    async def _until_stored(self, task: BoardTask) -> None:
        while True:
            with contextlib.suppress(Unavailable):
                change = Change(by="ann")
                await self._board.create(lambda _: task, Scope("*", "ann"), change, task.created_at)
                return
            await asyncio.sleep(0.1)

    async def _now(self, id_: str) -> BoardTask | None:
        with contextlib.suppress(Unavailable):
            found = await self._board.find([WHOSE], id_)
            return None if found is None else found.entity
        return None

    @staticmethod
    def _is_over(task: BoardTask | None) -> bool:
        return task is not None and task.status in ("done", "backlog") and not task.is_stopping

    async def _take_back(self, id_: str) -> None:
        with contextlib.suppress(Unavailable, WrongLastSequence):
            found = await self._board.find([WHOSE], id_)
            if found is not None and found.entity.status == "in_progress":
                now = datetime.now(UTC)
                moved = lifecycle.moved(found.entity, "backlog", now)
                await self._board.replace(found.number, moved, Change(by="ann"), now)


async def revisions(bus: Bus) -> list[Revision[BoardTask]]:
    """Return what became of all tasks, in the order in which it did."""
    board = KeptBoard(bus, TASKS)
    found = [
        board.read(message) for message in await bus.read("BOARD", [board_of(ANYBODY, "task")])
    ]
    return [one for one in found if one is not None]


async def test_each_task_is_moved_and_told_once_whoever_dies(tmp_path: Path) -> None:
    """C-8, L-2, L-12, L-15: one worker for each move, one at a time, and the home is told once."""
    async with killable(tmp_path, steps_of({"memory": ()} | PLAN), TIMES) as (stack, processes):
        admin = await stack.bus("admin")
        person, over = Person(admin), asyncio.create_task(processes.plans_over(PATIENCE_S * 3))
        while not over.done() or len(person.tasks) < 8:
            if len(person.tasks) == 5:
                stack.broker.kill()
            async with asyncio.timeout(PATIENCE_S):
                await person.go_on()
        await over
        ends = {exit_.crash_at.partition(":")[0] for exit_ in processes.exits if exit_.is_crash}
        assert ends == {point for points in PLAN.values() for point in points}
        made = await revisions(admin)
        _check_moves(made, person.tasks)
        await _check_workers(admin, made)
        await _check_told(admin, made)
        assert not [fault for fault in processes.faults() if "Traceback" in fault]


def _check_moves(made: list[Revision[BoardTask]], ids: list[str]) -> None:
    """Each goes by the moves that there are, is done once, and is the only one at its time."""
    tasks: dict[str, BoardTask] = {}
    for one in made:
        before = tasks.get(one.entity.id)
        if before is not None and before.status != one.entity.status:
            lifecycle.check_move(before.status, one.entity.status)
        tasks[one.entity.id] = one.entity
        held = [task for task in tasks.values() if lifecycle.is_held(task)]
        assert len(held) <= 1, held
    assert set(tasks) == set(ids)
    done = Counter(one.entity.id for one in made if one.entity.status == "done")
    assert set(done.values()) <= {1}
    assert {tasks[id_].status for id_ in ids[::2]} == {"done"}


async def _check_workers(bus: Bus, made: list[Revision[BoardTask]]) -> None:
    """Each time that one was given away a worker began, and no other ever did."""
    given = [one.entity.worker for one in made if one.entity.status == "in_progress"]
    assert len(set(given)) == len(given)
    events = [decode_event(m.data) for m in await bus.read("SYSTEM", ["system.*.*.*.in.control"])]
    starts = [
        event.session_key
        for event in events
        if isinstance(event, Control) and event.payload.op == "start"
    ]
    assert sorted(starts) == sorted(given)


async def _check_told(bus: Bus, made: list[Revision[BoardTask]]) -> None:
    """What the home is told is the end of each task that has one, once."""
    ended = [one.change.cause for one in made if one.entity.status == "done"]
    async with asyncio.timeout(PATIENCE_S):
        pause_s = pauses()
        while len(told := await bus.read("SESSIONS", [ANN.in_event("told.*")])) < len(ended):
            await asyncio.sleep(next(pause_s))
    assert sorted(decode_event(message.data).caused_by or "" for message in told) == sorted(ended)
