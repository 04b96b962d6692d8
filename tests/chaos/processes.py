"""Each service as a real process that is killed, ends at crash points, and is started again.

One slot for each replica. A slot with a plan starts its process with the plan's next crash
point, waits until it ended there (exit code 137), and goes on with the next; after the plan,
and without one, it only starts again what died. Only processes started here are ever killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from tests.support import warm
from vigil.crash import EXIT_CODE
from vigil.processes.process import Process, start

TRIES_MAX: Final = 5
PATIENCE_S: Final = 25.0
"""How long a process may go on without passing its crash point."""
KILLED: Final = -9
AGAIN_AFTER_S: Final = 0.5
ROOT: Final = Path(__file__).resolve().parents[2]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One kill of a plan: at the n-th passage of a point."""

    point: str
    passage: int = 1
    prepare: Callable[[], Awaitable[None]] | None = None
    """Builds the condition for the point while the service is away."""

    @property
    def crash_at(self) -> str:
        return f"{self.point}:{self.passage}"


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """The end of one process. `at_s` is monotonic."""

    name: str
    code: int
    crash_at: str
    at_s: float

    @property
    def is_crash(self) -> bool:
        """Whether it ended at its crash point."""
        return bool(self.crash_at) and self.code == EXIT_CODE

    @property
    def is_asked_for(self) -> bool:
        """Whether the test ended it, in one way or the other."""
        return self.is_crash or self.code == KILLED


class _Slot:
    def __init__(self, name: str, steps: Sequence[Step]) -> None:
        self.name = name
        self.steps = deque(steps)
        self.tries = 0
        self.process: Process | warm.Process | None = None
        self.task: asyncio.Task[None] | None = None
        self.plan_over = asyncio.Event()
        self.is_kept = True
        self.is_killed = False
        """Whether the test killed what ran, which says nothing of its crash point."""
        self.away_s = 0.0
        """How long to wait before the next start."""


class Processes:
    """The services of one run.

    Args:
        modules: by service, what is run in the place of its own module.
    """

    def __init__(
        self, home: Path, environment: Mapping[str, str], modules: Mapping[str, str] | None = None
    ) -> None:
        self._modules = modules or {}
        self._environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("VIGIL_", "AUTONOMY_", "ANTHROPIC_", "OPENAI_", "NATS_"))
        } | {"VIGIL_HOME": str(home), **environment}
        self.logs = home / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        self._slots: dict[str, _Slot] = {}
        self.exits: list[Exit] = []

    def start(self, name: str, steps: Sequence[Step] = ()) -> None:
        """Start and keep a service (``"cortex"``, or ``"cortex:2"`` for a second replica)."""
        slot = self._slots[name] = _Slot(name, steps)
        slot.task = asyncio.create_task(self._keep(slot), name=f"keep-{name}")

    async def _keep(self, slot: _Slot) -> None:
        while slot.is_kept:
            step = slot.steps[0] if slot.steps else None
            if step is None:
                slot.plan_over.set()
            elif step.prepare is not None:
                await step.prepare()
            await asyncio.sleep(slot.away_s)
            crash_at = "" if step is None else step.crash_at
            code = await self._run(slot, crash_at)
            exit_ = Exit(
                name=slot.name, code=code, crash_at=crash_at, at_s=asyncio.get_running_loop().time()
            )
            self.exits.append(exit_)
            if not exit_.is_asked_for:  # a service that can't start would be started endlessly
                await asyncio.sleep(AGAIN_AFTER_S)
            if step is not None:
                self._judge(slot, step, exit_)

    async def _run(self, slot: _Slot, crash_at: str) -> int:
        """Run the process to its end; kill it if it doesn't get to its crash point."""
        environment = self._environment | ({"VIGIL_CRASH_AT": crash_at} if crash_at else {})
        service = slot.name.partition(":")[0]
        module = self._modules.get(service, f"services.{service}")
        slot.is_killed = False
        with (self.logs / f"{slot.name.replace(':', '-')}.log").open("ab") as output:
            slot.process = await launched(module, environment, output.fileno())
        try:
            return await asyncio.wait_for(slot.process.wait(), PATIENCE_S if crash_at else None)
        except TimeoutError:
            self.kill(slot.name)
            slot.is_killed = False
            return await slot.process.wait()

    async def run_until(self, name: str, is_enough: Callable[[], Awaitable[object]]) -> None:
        """Run a service that is away until there is what `is_enough` looks for, and kill it."""
        with (self.logs / f"{name}.log").open("ab") as output:
            process = await launched(f"services.{name}", self._environment, output.fileno())
        try:
            while not await is_enough():
                await asyncio.sleep(0.05)
        finally:
            process.kill()
            await process.wait()

    def _judge(self, slot: _Slot, step: Step, exit_: Exit) -> None:
        if exit_.is_crash:
            slot.steps.popleft()
            slot.tries = 0
            return
        if slot.is_killed:
            return
        slot.tries += 1
        if slot.tries >= TRIES_MAX:
            codes = [e.code for e in self.exits[-TRIES_MAX:] if e.name == slot.name]
            raise AssertionError(f"{slot.name} never got to {step.crash_at}: ended with {codes}")

    async def plans_over(self, within_s: float) -> None:
        """Wait until every plan is carried out and its service started again.

        Raises:
            AssertionError: not within `within_s`, or a point could not be reached.
        """
        waiting = [asyncio.create_task(s.plan_over.wait()) for s in self._slots.values()]
        keeping = [slot.task for slot in self._slots.values() if slot.task is not None]
        ending = asyncio.create_task(_all(waiting))
        try:
            await asyncio.wait(
                {ending, *keeping}, timeout=within_s, return_when=asyncio.FIRST_COMPLETED
            )
            self.check()
            left = {s.name: [step.crash_at for step in s.steps] for s in self._slots.values()}
            assert ending.done(), f"not within {within_s} s: {left}"
        finally:
            ending.cancel()
            await asyncio.gather(ending, return_exceptions=True)

    def check(self) -> None:
        """Raise what ended the keeping of a slot, if anything did."""
        for slot in self._slots.values():
            if slot.task is not None and slot.task.done() and slot.is_kept:
                slot.task.result()

    def kill(self, name: str, *, away_s: float = 0.0, for_good: bool = False) -> bool:
        """SIGKILL; starts again after `away_s` seconds. False: it wasn't running anyway."""
        slot = self._slots[name]
        slot.away_s = away_s
        slot.is_kept = not for_good
        if slot.process is None or slot.process.returncode is not None:
            return False
        slot.is_killed = True
        with contextlib.suppress(ProcessLookupError):
            slot.process.kill()
        return True

    def signal(self, name: str, number: int) -> bool:
        """Send a signal, as SIGSTOP, to what runs; False: it doesn't."""
        process = self._slots[name].process
        if process is None or process.returncode is not None:
            return False
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        return True

    def faults(self) -> list[str]:
        """Return the ends that nobody asked for, and what the logs say of faults of ours."""
        found = [
            f"X5 {e.name} ended by itself with code {e.code}"
            for e in self.exits
            if not e.is_asked_for
        ]
        for path in sorted(self.logs.glob("*.log")):
            text = path.read_text("utf-8", "replace")
            for sign in ("Traceback", "ermissions violation", "service.failed", "cortex.task"):
                if times := text.lower().count(sign.lower()):
                    found.append(f"X5 {path.name}: {times} x {sign!r}")
        return found

    async def stop(self) -> None:
        """End every process, whatever state it is in."""
        tasks = [slot.task for slot in self._slots.values() if slot.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for slot in self._slots.values():
            self.kill(slot.name, for_good=True)
            if slot.process is not None:
                await slot.process.wait()


async def launched(
    module: str,
    environment: Mapping[str, str],
    output: int = subprocess.DEVNULL,
    args: Sequence[str] = (),
) -> Process | warm.Process:
    """Run ``python -m module args``; what it prints goes to the open file `output`."""
    if not warm.IS_OFFERED:
        return await start(
            sys.executable, "-m", module, *args, is_ended_with_us=True,
            cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
    with Path(os.devnull).open("r+b") as nothing:
        told = nothing.fileno() if output == subprocess.DEVNULL else output
        # In a thread: what forks may still be starting itself.
        starting = asyncio.create_task(asyncio.to_thread(
            warm.start, module, args, env=environment, cwd=ROOT,
            stdin=nothing.fileno(), stdout=told, stderr=told,
        ))  # fmt: skip
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            (await starting).kill()
            raise


async def _all(waiting: Sequence[asyncio.Task[bool]]) -> None:
    await asyncio.gather(*waiting)
