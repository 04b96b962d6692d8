"""Jobs through the whole of Vigil, as a program hands them in and looks after them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import httpx2

from tests.support.gateway import Gate, until
from tests.support.stack import Stack, running_stack

SERVICES: Final = ("gateway", "memory", "scheduler", "executor", "cortex")
ENDED: Final = ("succeeded", "failed", "cancelled")
PATIENCE_S: Final = 60.0


def steps(*wanted: tuple[str, dict[str, Any]]) -> str:
    """Return the goal that makes the rehearsal model plan these steps."""
    return "\n".join(f"{tool} {json.dumps(given)}" for tool, given in wanted)


def shell(command: str) -> tuple[str, dict[str, Any]]:
    return "shell", {"command": command}


class Jobs:
    """One person's jobs."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.http = http

    async def start(self, **body: Any) -> str:
        answer = await self.http.post("/api/jobs", json=body)
        assert answer.status_code == 202, answer.text
        id_: str = answer.json()["id"]
        return id_

    async def get(self, id_: str) -> dict[str, Any]:
        answer = await self.http.get(f"/api/jobs/{id_}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def change(self, id_: str, status: str) -> int:
        answer = await self.http.patch(f"/api/jobs/{id_}", json={"status": status})
        return answer.status_code

    async def until(self, id_: str, *statuses: str, runs: int = 0) -> dict[str, Any]:
        """Wait until the job is so, in that run or a later one; return it."""
        found: dict[str, Any] = {}

        async def is_so() -> bool:
            found.update(await self.get(id_))
            return found["status"] in statuses and found.get("runs", 0) >= runs

        await until(is_so, f"{id_} is {statuses}", PATIENCE_S)
        return await self.get(id_)

    async def ended(self, id_: str, *, runs: int = 1) -> dict[str, Any]:
        return await self.until(id_, *ENDED, runs=runs)

    async def at_step(self, id_: str, number: int) -> dict[str, Any]:
        """Wait until a step is under way."""

        async def is_there() -> bool:
            runs = (await self.get(id_)).get("step_runs", [])
            return len(runs) == number and "completed_at" not in runs[-1]

        await until(is_there, f"{id_} is at step {number}", PATIENCE_S)
        return await self.get(id_)


def errors(job: dict[str, Any]) -> list[str]:
    return [run.get("error", "") for run in job["step_runs"]]


@contextlib.asynccontextmanager
async def running_jobs(
    home: Path, anthropic_base_url: str | None = None, **model: Any
) -> AsyncIterator[tuple[Stack, Gate, Jobs]]:
    """All that jobs need, and ann; `model` are settings of the model's section."""
    if anthropic_base_url is not None:
        model.setdefault("main", "claude-test")
    async with running_stack(
        home, SERVICES, anthropic_base_url=anthropic_base_url, model=model
    ) as stack:
        gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        try:
            yield stack, gate, Jobs(await gate.person("ann"))
        finally:
            await gate.close()
