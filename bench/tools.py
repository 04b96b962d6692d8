"""Hands: what a tool call costs beside the tool, fifty workers at once, a start in the sandbox.

The services run in this process, beside a real broker that syncs every write, with a model that
answers at once. Instants are the broker's own, of when a record was stored.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench import floor
from bench.instant import NOOP, Instant, running
from bench.numbers import percentile
from services.cortex.model import ModelRequest
from services.executor.sandbox.box import environment_of
from services.executor.sandbox.choice import choose
from services.executor.sandbox.commands import run
from services.executor.workspace.workspace import Workspace
from tests.support.talk import Talk
from vigil.bus.bus import Message
from vigil.contracts import (
    CallTool,
    ToolResultEvent,
    decode_event,
    decode_turn,
)
from vigil.settings.sections import Executor, Nats
from vigil.subjects import Scope, SessionKey

KEY: Final = SessionKey("me", "vigil", "bench")
LOOPS, CALLS, WARM_LOOPS = 60, 8, 5
"""Messages, and calls for each, one after the other."""
WORKERS: Final = 50
CALLS_OF_ANSWER: Final = 20
"""As many as the cortex takes at once."""
STARTS: Final = 50
PATIENCE_S: Final = 120.0


class Latency(NamedTuple):
    p50_ms: float
    p99_ms: float
    floor_p50_ms: float
    """Of three publishes and two pulls on a broker alone, just before."""


class Started(NamedTuple):
    p50_ms: float
    bare_p50_ms: float
    """The same command without a sandbox."""
    kind: str


# ---------------------------------------------------------------- measurements


async def overhead(home: Path) -> Latency:
    """Measure from a turn with a call, stored, to its result, stored: one at a time."""
    sessions, messages = 1, 300
    base = await floor.measure(home / "floor", Nats(), sessions=sessions, messages=messages)

    def calls(request: ModelRequest) -> list[tuple[str, dict[str, Any]]]:
        done = 0
        for row in reversed(request.rows):
            if row.source == "person":
                break
            done += row.source == "tool"
        return [(NOOP, {})] if done < CALLS else []

    async with running(home / "system", Instant(calls), model={"calls_max": CALLS + 1}) as stack:
        talk = await Talk.open(stack, str(KEY))
        for number in range(WARM_LOOPS + LOOPS):
            await talk.ended(await talk.say(f"message {number}"))
        latencies = _latencies(talk.log)
        await talk.close()
    measured = latencies[WARM_LOOPS * CALLS :]
    if len(measured) != LOOPS * CALLS:
        raise RuntimeError(f"{len(measured)} calls were answered")
    return Latency(percentile(measured, 50), percentile(measured, 99), base["p50_ms"])


def _latencies(log: Sequence[Message]) -> list[float]:
    """Return how long each call took, in the order of the log."""
    found: list[float] = []
    begun: dict[str, datetime] = {}
    for message in log:
        if KEY.is_turn(message.subject):
            effects = decode_turn(message.data).effects
            begun |= {e.id: message.stored_at for e in effects if isinstance(e, CallTool)}
        elif message.subject == KEY.in_event("tool_result"):
            event = decode_event(message.data)
            assert isinstance(event, ToolResultEvent)
            if event.payload.is_error:
                raise RuntimeError(f"a call failed: {event.payload.content}")
            late = message.stored_at - begun[event.payload.call_id]
            found.append(late / timedelta(milliseconds=1))
    return found


async def workers(home: Path) -> float:
    """Return the seconds from a message to the result of the last of the workers it asked for."""

    def calls(request: ModelRequest) -> list[tuple[str, dict[str, Any]]]:
        if request.session_key != str(KEY) or request.rows[-1].source not in ("person", "tool"):
            return []
        begun = sum(len(row.blocks) for row in request.rows if row.source == "tool")
        return [
            ("spawn_worker", {"task": f"task {n}"})
            for n in range(begun, min(begun + CALLS_OF_ANSWER, WORKERS))
        ]

    limits = {"children_max": WORKERS, "fan_out_max": WORKERS}
    async with running(home, Instant(calls), sessions=limits) as stack:
        talk = await Talk.open(stack, str(KEY))
        await talk.say("hello")

        def results() -> list[Message]:
            return [m for m in talk.log if m.subject == KEY.in_event("tool_result")]

        await talk.until(lambda: len(results()) >= WORKERS, PATIENCE_S)
        told = [decode_event(message.data) for message in results()]
        done = [e.payload for e in told if isinstance(e, ToolResultEvent)]
        if any(one.is_error or "done" not in one.content for one in done):
            raise RuntimeError(f"a worker failed: {done}")
        if len({one.call_id for one in done}) != WORKERS:
            raise RuntimeError("a worker told its result twice")
        await talk.close()
        return (results()[-1].stored_at - talk.log[0].stored_at) / timedelta(seconds=1)


async def sandbox_start() -> Started:
    """Measure `true`, from its start to its end, in the best sandbox that works here."""
    choice = await choose(Executor())
    sandbox = choice.sandbox()
    if sandbox is None:
        raise RuntimeError(choice.problem)
    with tempfile.TemporaryDirectory() as root:
        workspace = Workspace(Path(root), Scope("vigil", "me"))
        workspace.make()
        environment = environment_of(workspace=workspace.folder)

        async def once(argv: list[str]) -> float:
            begun_at = time.perf_counter()
            outcome = await run(
                argv, environment, kind=sandbox.kind, timeout_s=10.0, output_bytes_max=1024
            )
            if outcome.exit_code:
                raise RuntimeError(outcome.output)
            return (time.perf_counter() - begun_at) * 1000

        boxed = sandbox.argv_of(["true"], workspace=workspace.folder, uid=workspace.uid)
        pairs = [(await once(boxed), await once(["true"])) for _ in range(STARTS)]
    return Started(
        statistics.median(pair[0] for pair in pairs),
        statistics.median(pair[1] for pair in pairs),
        choice.kind,
    )
