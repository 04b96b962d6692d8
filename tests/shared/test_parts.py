"""What goes on beside a service doesn't end in silence: the service ends by it, or it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.support.pauses import pauses
from tests.support.stack import Stack
from tests.support.talk import PATIENCE_S
from vigil import runtime
from vigil.backoff import Backoff
from vigil.errors import Unavailable
from vigil.runtime import Context
from vigil.settings import config
from vigil.settings.config import Settings
from vigil.settings.live import followed
from vigil.settings.live.followed import FollowedSettings

HOOK = '[channels.{name}]\nkind = "webhook"\nurl = "https://hooks.example/{name}"\n'


async def served(bare: Stack, part: Callable[[], Coroutine[Any, Any, None]]) -> list[str]:
    """Run a service with that beside it, until it ends by itself; return what it did."""
    did: list[str] = []

    async def serve(context: Context) -> None:
        task = context.beside(part(), "delivery-part")
        context.ready.set()
        try:
            await asyncio.wait({task})
            did.append("part over")
            await asyncio.sleep(0.05)
            did.append("end")
        finally:
            did.append("closed")

    async with asyncio.timeout(PATIENCE_S):
        try:
            await runtime.run("delivery", bare.settings, bare.broker.url, serve=serve)
        except Exception as error:
            did.append(repr(error))
    return did


async def test_a_part_that_fails_ends_its_service_by_its_error(bare: Stack) -> None:
    """Whoever keeps services running begins it again, and says why."""

    async def fail() -> None:
        raise KeyError("goals")

    with capture_logs() as lines:
        assert (await served(bare, fail))[-2:] == ["closed", "KeyError('goals')"]
    (line,) = [line for line in lines if line.get("action") == "service.part"]
    assert line["task"] == "delivery-part"
    assert line["error"].startswith("KeyError: 'goals' (test_parts.py:")

    async def lose() -> None:
        raise Unavailable("the broker went")

    did = await served(bare, lose)
    assert did[-1] == "Unavailable('the broker went')"  # so it waits for the broker, as ever


async def test_a_part_that_is_over_or_cancelled_ends_nothing(bare: Stack) -> None:
    async def end() -> None:
        pass

    async def cancel() -> None:
        raise asyncio.CancelledError

    for part in (end, cancel):
        assert await served(bare, part) == ["part over", "end", "closed"]


async def test_what_cannot_be_taken_in_is_tried_again_and_ends_no_following(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it failed: once the cause is over it holds, and so does what changes later."""
    monkeypatch.setattr(followed, "POLL_S", 0.01)
    monkeypatch.setattr(followed, "AGAIN", Backoff(0.02, 0.02))
    file = tmp_path / "vigil.toml"
    taken: asyncio.Queue[set[str]] = asyncio.Queue()
    faults: list[Exception] = [KeyError("a fault of ours"), Unavailable("the broker is away")]

    async def take(read: Settings) -> None:
        if faults:
            raise faults.pop(0)
        taken.put_nowait(set(read.config.channels) - {"push"})

    file.write_text("")
    following = FollowedSettings(config.load({}, home=tmp_path), take)
    task = asyncio.create_task(following.follow())
    with capture_logs() as lines:
        async with asyncio.timeout(PATIENCE_S):
            file.write_text(HOOK.format(name="one"))
            assert await taken.get() == {"one"}
            file.write_text(HOOK.format(name="two"))
            assert await taken.get() == {"two"}
    told = [line["error"] for line in lines if line.get("action") == "config.left"]
    assert told == ["KeyError('a fault of ours')", "Unavailable('the broker is away')"]

    def fail(*_: object, **__: object) -> Settings:
        raise TypeError("a fault of ours")

    with monkeypatch.context() as patched, capture_logs() as lines:
        patched.setattr(config, "load", fail)
        file.write_text(HOOK.format(name="three"))
        async with asyncio.timeout(PATIENCE_S):
            pause_s = pauses()
            while not any(line.get("action") == "config.left" for line in lines):
                await asyncio.sleep(next(pause_s))
    async with asyncio.timeout(PATIENCE_S):
        file.write_text(HOOK.format(name="four"))
        assert await taken.get() == {"four"}
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert taken.empty()
