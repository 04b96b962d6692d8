"""The executor with a source of the test's own, whose runs are counted in a file.

`python -m tests.support.executing` is the service as a process, with that source added.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from services.executor import __main__ as executor
from services.executor import sources
from services.executor.config import ExecutorLimits
from services.executor.tools.registry import Registry
from services.executor.tools.source import Call, ToolOutput
from tests.support.memories import KEY, Session, call_of, until
from tests.support.pauses import pauses
from tests.support.stack import Stack
from vigil import runtime, topology
from vigil.backoff import Backoff
from vigil.bus.bus import Bus
from vigil.bus.kv import KeyValue
from vigil.contracts import (
    CallTool,
    CancelCall,
    CancelCallPayload,
    Risk,
    Shelf,
    Tool,
    decode_shelf,
    effect_id,
)
from vigil.errors import InvalidInput, Unavailable
from vigil.runtime import Context
from vigil.subjects import SessionKey

SOURCE: Final = "counting"
RUNS: Final = "runs.txt"
"""In the home: a line with the call's id for each run that began."""
ENDS: Final = "ends.txt"
"""The same for each run that came to its end."""

_start = sources.start


def tool_of(name: str, **fields: Any) -> Tool:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    defaults: dict[str, Any] = {"description": name, "risk": "write"}
    return Tool(name=name, input_schema=schema, **(defaults | fields))


class Counting:
    """Tools that write down each run before they do what their arguments say.

    `count` may not run twice, `again` may. With `gate` they wait until that file of the home is
    there, with `ms` so long; `fault` names how they fail.
    """

    def __init__(self, home: Path, *tools: Tool) -> None:
        self._home = home
        self.tools = tools or (
            tool_of("count"),
            tool_of("again", is_idempotent=True),
            tool_of("quick", timeout_s=0.2),
            tool_of("small", output_bytes_max=1024),
            tool_of("look", risk="read", is_idempotent=True),
        )
        self.problem = ""
        self.is_away = False
        self.is_closed = False

    @property
    def shelf(self) -> Shelf:
        return Shelf(
            source=SOURCE, at=datetime.now(UTC), tools=self.tools, problem=self.problem,
            facts={"kind": "test"},
        )  # fmt: skip

    async def run(self, call: Call) -> ToolOutput:
        if self.is_away:
            raise Unavailable("it is away")
        text = call.input.get("text", "")
        if not isinstance(text, str):
            raise InvalidInput("text", "must be a string")
        _note(self._home / RUNS, call.id)
        await self._wait(call.input)
        if call.input.get("fault") == "bug":
            raise RuntimeError("a bug of the source")
        _note(self._home / ENDS, call.id)
        return ToolOutput(
            content=f"{call.tool.name} {text}" * call.input.get("times", 1),
            is_error=call.input.get("fault") == "told",
            is_tainted=bool(call.input.get("tainted")),
        )

    async def _wait(self, arguments: dict[str, Any]) -> None:
        await asyncio.sleep(arguments.get("ms", 0) / 1000)
        gate = arguments.get("gate")
        pause_s = pauses()
        while gate is not None and not (self._home / gate).exists():
            await asyncio.sleep(next(pause_s))

    async def close(self) -> None:
        self.is_closed = True


def _note(path: Path, text: str) -> None:
    """Append a line at once and whole, whatever other processes write."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(descriptor, f"{text}\n".encode())
    finally:
        os.close(descriptor)


def noted(home: Path, name: str = RUNS) -> Counter[str]:
    """Return how often each call has begun to run, or ended."""
    path = home / name
    return Counter(path.read_text().split()) if path.exists() else Counter()


made: list[Counting] = []
registries: list[Registry] = []
"""Those of this process, the newest last."""


@contextlib.asynccontextmanager
async def start(context: Context, registry: Registry) -> AsyncIterator[None]:
    """Start the executor's sources, and the one that counts."""
    async with _start(context, registry):
        made.append(Counting(context.settings.home))
        registries.append(registry)
        registry.set(made[-1])
        yield


async def has_offered(bus: Bus, source: str = "builtin") -> None:
    """Wait until a source offers tools: who is asked before doesn't know of them."""
    shelves = KeyValue(bus, "TOOLS")

    async def is_there() -> bool:
        shelf = await shelves.get(source)
        return shelf is not None and bool(decode_shelf(shelf.value).tools)

    await until(is_there, f"{source} offers tools", within_s=60)


def limit(monkeypatch: pytest.MonkeyPatch, **limits: Any) -> None:
    """Start executors with limits that suit a test, and these."""
    patient: dict[str, Any] = {
        "run_margin_s": 0.2, "attempts_pause_s": 0.02,
        "turns": msgspec.structs.replace(
            ExecutorLimits().turns, give_back_delay_s=0.1, after_refusal=Backoff(0.1, 0.1)
        ),
    }  # fmt: skip
    monkeypatch.setattr(executor, "ExecutorLimits", partial(ExecutorLimits, **(patient | limits)))


# ---------------------------------------------------------------- what the cortex would write


def call(name: str, ordinal: int = 1, *, key: SessionKey = KEY, **arguments: Any) -> CallTool:
    """Build a call of one of the counting tools."""
    risk: Risk = "write"
    return call_of(name, arguments, ordinal, key=key, service="executor", risk=risk)


def session_on(bus: Bus, key: SessionKey = KEY) -> Session:
    consumer = topology.EXECUTOR_TURNS_SYSTEM if key.is_system else topology.EXECUTOR_TURNS
    return Session(bus, key, consumer=consumer, letter="x")


async def session_of(stack: Stack, key: SessionKey = KEY) -> Session:
    return session_on(await stack.bus("admin"), key)


def withdrawal(one: CallTool, ordinal: int = 90) -> CancelCall:
    """Build what says that nobody waits for a call any more."""
    payload = CancelCallPayload(call_id=one.id, tool=one.payload.tool)
    id_ = effect_id(str(KEY), 1, ordinal, "cancel_call", payload, "")
    return CancelCall(id=id_, ordinal=ordinal, payload=payload)


async def has_begun(stack: Stack, one: CallTool) -> None:
    """Wait until a call runs."""

    async def is_noted() -> bool:
        return one.id in noted(stack.settings.home)

    await until(is_noted, f"{one.payload.tool} runs")


def open_gate(stack: Stack, name: str = "gate") -> None:
    """Let the tools go on that wait for it."""
    (stack.settings.home / name).touch()


if __name__ == "__main__":
    sources.start = start
    runtime.main("executor")
