"""A start that takes long: waited for as long as it moves, told, and nothing that serves ended."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support import timers
from tests.support.stack import running_broker, settings_of
from vigil import runtime
from vigil.broker import process as broker_module
from vigil.errors import OutcomeUnknown, Unavailable
from vigil.local import runfile, startup
from vigil.local import up as up_module
from vigil.local.home import ensure_home
from vigil.local.runfile import RunFile
from vigil.local.startup import CPU_MIN_S, POLLS_MIN, STILL_S, StartedService, StartProgress
from vigil.local.up import Supervisor
from vigil.observe.health import Health
from vigil.runtime import Context
from vigil.topology import SERVICES


def told(*, ready: bool = False, position: int = 0) -> Health:
    facts = {"position": position}
    return Health(service="memory", instance="i", pid=1, version="0", ready=ready, facts=facts)


def memory(**fields: Any) -> dict[str, StartedService]:
    return {"memory": StartedService(**({"pid": 1} | fields))}


def stuck_after(*looks: Mapping[str, StartedService], pause_s: float = STILL_S / 2) -> bool:
    """Whether a start counts as stuck that looked like that, each look `pause_s` later."""
    start = StartProgress(0.0)
    for number, services in enumerate(looks, 1):
        start.take_in(services, number * pause_s)
    return start.is_still(len(looks) * pause_s)


def test_what_moves_is_waited_for() -> None:
    """P-1: however slow it is, and whichever of it moves."""
    often = range(2 * POLLS_MIN)
    assert stuck_after(*(memory() for _ in often))
    assert not stuck_after(*(memory(cpu_s=n * CPU_MIN_S * 1.01) for n in often))
    assert not stuck_after(*(memory(health=told(position=n)) for n in often))
    assert not stuck_after(*(memory(pid=n) for n in often))
    # At rest, who answers takes some CPU as well.
    assert stuck_after(*(memory(cpu_s=n * CPU_MIN_S * 2, health=told()) for n in often))
    # Where looking itself takes long, the machine is busy.
    assert not stuck_after(*(memory() for _ in range(POLLS_MIN // 2)))


class Slow:
    """The service `delivery` in the place of the real one: it is ready when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.goes_on = asyncio.Event()
        load = runtime.load_service

        async def serve(context: Context) -> None:
            context.warnings["letters"] = "reads 7 letters"
            await self.goes_on.wait()
            context.ready.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(
            runtime, "load_service", lambda name: serve if name == "delivery" else load(name)
        )


@contextlib.asynccontextmanager
async def starting_up(
    home: Path, without: tuple[str, ...]
) -> AsyncIterator[tuple[Supervisor, asyncio.Task[None], list[RunFile]]]:
    """`vigil up` in this process; the list gets what it says once it's ready."""
    settings = settings_of(home)
    ensure_home(settings)
    supervisor, ready = Supervisor(settings, 1, without), []
    task = asyncio.create_task(supervisor.run(ready.append))
    try:
        yield supervisor, task, ready
    finally:
        task.cancel()
        await asyncio.wait({task})


def without(*names: str) -> tuple[str, ...]:
    return tuple(name for name in SERVICES if name not in names)


async def test_what_serves_goes_on_while_something_else_is_stuck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P-1: told, with what it is at; and ready as soon as that is."""
    monkeypatch.setattr(startup, "STILL_S", 0.0)
    monkeypatch.setattr(startup, "POLLS_MIN", 2)
    slow = Slow(monkeypatch)
    async with starting_up(tmp_path, without("gateway", "delivery")) as (supervisor, task, ready):

        async def is_told() -> bool:
            run = runfile.read(supervisor.settings.run_file)
            assert not task.done(), task.exception()
            return run is not None and run.is_stuck

        await timers.until(is_told, timeout_s=60)
        run = runfile.read(supervisor.settings.run_file)
        assert run is not None
        assert run.starting == {"delivery": "isn't ready: reads 7 letters"}
        async with httpx2.AsyncClient(base_url=run.url) as http:
            assert (await http.get("/healthz")).status_code == 200
        assert ready == []
        slow.goes_on.set()

        async def is_ready() -> bool:
            return bool(ready)

        await timers.until(is_ready, timeout_s=60)
        run = runfile.read(supervisor.settings.run_file)
        assert run is not None
        assert (run.is_ready, run.is_stuck, run.starting) == (True, False, {})


async def test_a_start_where_nothing_serves_and_nothing_moves_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P-1: with what it was at."""
    monkeypatch.setattr(startup, "STILL_S", 0.0)
    monkeypatch.setattr(startup, "POLLS_MIN", 2)
    Slow(monkeypatch)
    async with starting_up(tmp_path, without("delivery")) as (_, task, ready):
        await asyncio.wait({task}, timeout=60)
        with pytest.raises(Unavailable, match=r"delivery isn't ready: reads 7 letters"):
            task.result()
        assert ready == []


async def test_a_broker_that_is_slow_to_answer_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P-1: what is made on it at the start is made once more, and is the same."""
    make, calls = up_module.provision, 0

    async def late_once(*given: Any) -> None:
        nonlocal calls
        calls += 1
        await make(*given)
        if calls == 1:
            raise OutcomeUnknown("the broker did not answer in time")

    monkeypatch.setattr(up_module, "provision", late_once)
    async with starting_up(tmp_path, without("delivery")) as (_, task, ready):

        async def is_ready() -> bool:
            assert not task.done(), task.exception()
            return bool(ready)

        await timers.until(is_ready, timeout_s=60)
    assert calls == 2


async def test_a_broker_that_has_much_to_read_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P-1: it doesn't answer for longer than it may rest, and works all the time."""
    real, slow = broker_module.binary(), tmp_path / "nats-server"
    slow.write_text(f'#!/bin/bash\nfor ((n = 0; n < 250000; n++)); do :; done\nexec {real} "$@"\n')
    slow.chmod(0o700)
    monkeypatch.setattr(broker_module, "binary", lambda: slow)
    monkeypatch.setattr(broker_module, "STILL_S", 0.4)
    async with running_broker(tmp_path / "home") as broker:
        admin = await broker.admin()
        assert (await admin.api("INFO", {}))["streams"] > 0
        await admin.close()
