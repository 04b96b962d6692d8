"""Sessions that can't read their state any more: a job and a task's worker end, and who waits for
them is told (SPEC J-1, C-8)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.gateway import Gate
from tests.support.jobs import Jobs, shell, steps
from tests.support.memories import until
from tests.support.stack import running_stack
from vigil.contracts import ORDINAL_HEADER, POSITION_HEADER, SendMessage, TellParent, decode_turn
from vigil.subjects import SessionKey

SERVICES = ("gateway", "cortex", "executor", "scheduler", "delivery")


@pytest.mark.parametrize("headers", [True, False])
async def test_it_doesnt_stay_running(tmp_path: Path, *, headers: bool) -> None:
    sections = {
        "executor": {"sandbox": "off", "allow_unsafe": True},
        "sessions": {"idle_release_s": 0.5},
    }
    async with running_stack(tmp_path / "home", services=SERVICES, **sections) as stack:
        gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        jobs = Jobs(await gate.person("ann"))
        wait = shell("until [ -e go ]; do sleep 0.05; done")
        id_ = await jobs.start(goal=steps(wait, shell("true")))
        await jobs.until(id_, "running")
        key = SessionKey("ann", "vigil", f"_planner-{id_}")
        await stack.stop("cortex")
        last = await gate.admin.get_last(key.stream, key.turns)
        assert last is not None
        wanted = (POSITION_HEADER, ORDINAL_HEADER) if headers else ()
        kept = {name: last.headers[name] for name in wanted}
        await gate.admin.publish(key.turn, b"garbage", kept)
        workspace = tmp_path / "home" / "workspaces" / "vigil" / "ann"

        async def has_begun() -> bool:
            return workspace.is_dir()

        await until(has_begun, "the call runs")
        (workspace / "go").touch()  # its result wakes the session
        await stack.start("cortex")
        job = await jobs.until(id_, "failed")
        assert "could not be read" in job["error"]
        home = SessionKey("ann", "vigil", "main")

        async def said() -> list[str]:
            found = await gate.admin.read(home.stream, [home.turns])
            effects = [effect for m in found for effect in decode_turn(m.data).effects]
            return [e.payload.text for e in effects if isinstance(e, SendMessage)]

        async def is_told() -> bool:
            return len(await said()) == 1

        await until(is_told, "the person is told")
        assert (await said())[0] == f"A job failed. (`vigil jobs show {id_}`)", (
            "its part from outside is lost, too"
        )
        assert await jobs.change(id_, "queued") == 202, "it may be run again"
        await jobs.until(id_, "succeeded", runs=job["runs"] + 1)
        await gate.close()


async def test_a_task_is_taken_from_a_worker_that_lost_its_state(tmp_path: Path) -> None:
    """C-8: it fails with the reason, as any try does, and another worker does it."""
    # With memory: a worker looks there first, and would wait 30 s for nobody's answer.
    async with running_stack(tmp_path / "home", services=(*SERVICES, "memory")) as stack:
        gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        await stack.stop("cortex")
        ann = await gate.person("ann")
        id_ = (await ann.post("/api/tasks", json={"title": "Tidy up"})).json()["id"]
        task: dict[str, Any] = {}

        async def is_(status: str) -> bool:
            nonlocal task
            task = (await ann.get(f"/api/tasks/{id_}")).json()
            return bool(task["status"] == status)

        await until(lambda: is_("in_progress"), "a worker has it")
        worker = SessionKey.parse(task["worker"])

        async def has_begun() -> bool:
            return await gate.admin.get_last(worker.stream, worker.in_all) is not None

        await until(has_begun, "its first event is stored")
        await gate.admin.publish(worker.turn, b"garbage", {})
        await stack.start("cortex")
        await until(lambda: is_("done"), "another worker does it")
        steps = [step["status"] for step in task["history"]]
        assert steps == ["ready", "in_progress", "ready", "in_progress", "done"]
        assert (task["tries"], task["worker"] != str(worker)) == (2, True)
        _, end = await gate.admin.read(worker.stream, [worker.turns])
        turn = decode_turn(end.data)
        (told,) = (e.payload.content for e in turn.effects if isinstance(e, TellParent))
        assert (turn.outcome, told) == (
            "failed",
            "What it was at could not be read, so it was ended.",
        )
        await gate.close()
