"""A job whose services, or whose broker, are killed in the middle of its steps (SPEC J-1, X-5)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import pytest

from tests.chaos.arena import ENVIRONMENT
from tests.chaos.processes import Processes
from tests.support.executing import has_offered
from tests.support.gateway import Gate, until
from tests.support.jobs import Jobs, shell, steps
from tests.support.stack import Stack, running_broker, settings_of
from vigil.contracts import Job, SendMessage, decode_board, decode_turn
from vigil.local.home import ensure_home
from vigil.subjects import SessionKey

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("halved_times")]

SERVICES: Final = ("cortex", "executor", "memory", "scheduler")
VICTIMS: Final = {
    "cortex": ("cortex",),
    "executor": ("executor",),
    "all": SERVICES,
    "broker": ("broker",),
}
AT: Final = (2, 5)
"""During which steps something is killed."""
LONG_AT: Final = (1, 2, 3, 5, 7, 8)
PATIENCE_S: Final = 180.0
TIMES: Final = {"VIGIL_MODEL__TOOL_TIMEOUT_S": "100"}
"""A turn comes back 8 s after its holder was killed; that is no reason to give a call up."""


class Arena(NamedTuple):
    stack: Stack
    processes: Processes
    gate: Gate
    jobs: Jobs

    def kill(self, victims: tuple[str, ...]) -> None:
        for victim in victims:
            if victim == "broker":
                self.stack.broker.kill()
            else:
                self.processes.kill(victim)


@asynccontextmanager
async def running_arena(home: Path) -> AsyncIterator[Arena]:
    """The broker and the gateway of this process; the others as processes of their own."""
    settings = settings_of(home)
    ensure_home(settings)
    async with running_broker(home) as broker:
        broker.watch()
        stack = Stack(broker, settings)
        processes = Processes(home, ENVIRONMENT | TIMES | {"NATS_URL": broker.url})
        try:
            await stack.start("gateway")
            for service in SERVICES:
                processes.start(service)
            gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
            await has_offered(gate.admin)
            yield Arena(stack, processes, gate, Jobs(await gate.person("ann")))
            await gate.close()
        finally:
            await processes.stop()
            await stack.close()


def work() -> list[tuple[str, dict[str, Any]]]:
    """Return steps of which every other one may not run twice."""
    return [
        shell("echo 1 >> log; sleep 0.5"),
        shell("echo 2 >> log; sleep 0.5"),
        ("read_file", {"path": "log"}),
        ("levitate", {}),
        shell("echo 5 >> log; sleep 0.5; exit 3"),
        ("remember", {"text": "Step six was here."}),
        shell("echo 7 >> log; sleep 0.5"),
        shell("echo 8 >> log; sleep 0.5"),
    ]


async def at_step(jobs: Jobs, id_: str, number: int) -> None:
    """Wait until that step has begun, or a later one."""

    async def has_begun() -> bool:
        answer = await jobs.http.get(f"/api/jobs/{id_}")
        return answer.status_code == 200 and len(answer.json().get("step_runs", ())) >= number

    await until(has_begun, f"step {number} of {id_}", PATIENCE_S)


async def ended(jobs: Jobs, id_: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    async def is_over() -> bool:
        answer = await jobs.http.get(f"/api/jobs/{id_}")
        if answer.status_code == 200:
            found.update(answer.json())
        return found.get("status") in ("succeeded", "failed", "cancelled")

    await until(is_over, f"{id_} ended", PATIENCE_S)
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Kill each in turn; in the short form not the executor alone, which dies with `all`.

    Ends at each of its steps are in tests/executor/test_executor_kills.py.
    """
    if "name" in metafunc.fixturenames:
        is_long = metafunc.config.getoption("--long")
        metafunc.parametrize("name", [name for name in VICTIMS if is_long or name != "executor"])


async def test_a_job_survives_kills(tmp_path: Path, name: str, seed: int, is_long: bool) -> None:
    """J-1, X-5: it finishes, each command ran once at most, and the note is kept once."""
    random = Random(f"{seed}-{name}")
    async with running_arena(tmp_path) as arena:
        first = await ended(arena.jobs, await _start(arena, steps(("list_memory", {}))))
        assert first["status"] == "succeeded"  # everything is up

        id_ = await _start(arena, steps(*work()))
        for number in LONG_AT if is_long else AT:
            await at_step(arena.jobs, id_, number)
            await asyncio.sleep(random.uniform(0, 0.4))  # where the kill falls is up to chance
            arena.kill(VICTIMS[name])
        job = await ended(arena.jobs, id_)

        assert job["status"] == "succeeded", job
        runs = job["step_runs"]
        assert len(runs) == len(work())
        assert all("completed_at" in run for run in runs)
        _check_commands(arena, runs)
        assert runs[3]["error"] == "There is no tool named 'levitate'."
        if name == "cortex":
            assert [bool(run.get("error")) for run in runs] == [i in (3, 4) for i in range(8)]
        await _check_told(arena, 2)
        await _check_board(arena, id_)
        await _check_note(arena, id_)


async def _start(arena: Arena, goal: str) -> str:
    return await arena.jobs.start(goal=goal)


def _check_commands(arena: Arena, runs: list[dict[str, Any]]) -> None:
    """What a step says is what happened: done means once, an error at most once."""
    (log,) = arena.stack.settings.workspaces.rglob("log")
    written = Counter(log.read_text().split())
    for number, run in enumerate(runs, start=1):
        if run["tool"] != "shell":
            continue
        times = written[str(number)]
        error = run.get("error", "")
        if not error or "exit code 3" in error:
            assert times == 1, (number, run)
        else:
            assert times <= 1, (number, run)
            assert "ambiguous" in error, (number, run)


async def _check_told(arena: Arena, jobs: int) -> None:
    """L-12: the person's home is told of each end once, and says so once."""
    home = SessionKey("ann", "vigil", "main")

    async def said() -> int:
        found = await arena.gate.admin.read("SESSIONS", [home.turns])
        turns = [decode_turn(message.data) for message in found]
        return sum(isinstance(effect, SendMessage) for turn in turns for effect in turn.effects)

    async def is_said() -> bool:
        return await said() >= jobs

    await until(is_said, "the ends were said", PATIENCE_S)
    told = await arena.gate.admin.read("SESSIONS", [home.in_event("told.*")])
    assert (len(told), await said()) == (jobs, jobs)


async def _check_board(arena: Arena, id_: str) -> None:
    """The board went forward, and ended with the session's own last word."""
    messages = await arena.gate.admin.read("BOARD", [f"board.vigil.ann.job.{id_}"])
    entries = [decode_board(message.data) for message in messages]
    turns = [entry.turn_seq for entry in entries]
    assert turns == sorted(set(turns))
    last = entries[-1].entity
    assert isinstance(last, Job)
    assert last.status == "succeeded"


async def _check_note(arena: Arena, id_: str) -> None:
    """All that came from the job is there once: what a step remembered, and the note of its end."""

    async def kept() -> list[str]:
        wanted = {"source": f"job:{id_}"}
        answer = await arena.jobs.http.get("/api/memories", params=wanted)
        found = answer.json()["memories"] if answer.status_code == 200 else []
        return sorted(memory["type"] for memory in found)

    async def is_kept() -> bool:
        return "summary" in await kept()

    await until(is_kept, "the note is kept", PATIENCE_S)
    assert await kept() == ["fact", "summary"]
