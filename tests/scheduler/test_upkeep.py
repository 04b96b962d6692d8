"""The scheduler asks memory to look after itself: when, once, and what no answer means."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.scheduler import __main__ as scheduler
from services.scheduler import rounds
from services.scheduler.config import SchedulerLimits
from tests.support.stack import Stack, running_stack
from vigil.memory.operations.maintain import Maintain, Maintained
from vigil.memory.questions import MAINTAIN_ALL

FAST = SchedulerLimits(upkeep_first_s=0.05)


class Memory:
    """Answers as the memory service does, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.at_once = self.most_at_once = 0
        self.takes_s = 0.0
        self.has_more = False
        self._heard = asyncio.Condition()

    async def listen(self, stack: Stack) -> None:
        self._bus = await stack.bus("memory")
        await self._bus.listen(MAINTAIN_ALL, self._take)

    async def _take(self, msg: Any) -> None:
        asyncio.get_running_loop().create_task(self._answer(msg))

    async def _answer(self, msg: Any) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        async with self._heard:
            self.asked.append(msgspec.json.decode(msg.data, type=Maintain).what)
            self._heard.notify_all()
        await asyncio.sleep(self.takes_s)
        self.at_once -= 1
        await self._bus.send(msg.reply, msgspec.json.encode(self._done()))

    def _done(self) -> Maintained:
        return Maintained(pruned=1, has_more=self.has_more)

    async def until(self, what: str, count: int) -> None:
        async with asyncio.timeout(20), self._heard:
            await self._heard.wait_for(lambda: self.asked.count(what) >= count)


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    serve = scheduler.serve
    monkeypatch.setattr(scheduler, "serve", lambda context: serve(context, FAST))


@pytest.mark.usefixtures("fast")
async def test_both_passes_are_asked_for_again_and_again(tmp_path: Path) -> None:
    """M-5, M-6: maintenance soon after the start, both by their settings; never two at once."""
    often = {"maintenance_every_s": 0.15, "association_every_s": 0.1}
    async with running_stack(tmp_path, (), memory=often) as stack:
        memory = Memory()
        memory.takes_s = 0.12
        await memory.listen(stack)
        await stack.start("scheduler")
        await memory.until("maintenance", 3)
        await memory.until("association", 3)
        assert memory.asked[0] == "maintenance"
        assert memory.most_at_once == 1


@pytest.mark.usefixtures("fast")
async def test_a_backlog_is_gone_on_with_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M-5: after a rest by how long the pass took, not after all of the time between two."""
    told: list[float | None] = []
    after = rounds.after

    def noted(*args: Any, more_after_s: float | None, **kwargs: Any) -> tuple[rounds.Round, ...]:
        told.append(more_after_s)
        return after(*args, more_after_s=more_after_s, **kwargs)

    monkeypatch.setattr(rounds, "after", noted)
    often = {"maintenance_every_s": 3600.0, "association_every_s": 0.1}
    async with running_stack(tmp_path, (), memory=often) as stack:
        memory = Memory()
        memory.takes_s = 0.01
        await memory.listen(stack)
        await stack.start("scheduler")
        await memory.until("association", 2)
        memory.has_more = True
        seen = len(memory.asked)
        await memory.until("association", seen + 2)
    assert told[0] is None
    assert (told[-1] or 0.0) >= memory.takes_s


@pytest.mark.usefixtures("fast")
async def test_only_the_active_one_asks(tmp_path: Path) -> None:
    """M-6: of two schedulers, the one with the lease."""
    rare = {"maintenance_every_s": 3600.0, "association_every_s": 3600.0}
    async with running_stack(tmp_path, (), memory=rare) as stack:
        memory = Memory()
        await memory.listen(stack)
        await stack.start("scheduler", "scheduler:2")
        await memory.until("maintenance", 1)
        await stack.stop("scheduler")
        await memory.until("maintenance", 2)
        assert memory.asked == ["maintenance", "maintenance"]


@pytest.mark.usefixtures("fast")
async def test_without_memory_the_scheduler_goes_on(tmp_path: Path) -> None:
    """X-5: nobody answers; it is asked again later, and time goes on meanwhile."""
    often = {"maintenance_every_s": 0.2, "association_every_s": 3600.0}
    async with running_stack(tmp_path, ("scheduler",), memory=often) as stack:
        memory = Memory()
        await memory.listen(stack)
        await memory.until("maintenance", 2)
        assert stack.contexts["scheduler"].health().ready


@given(
    st.lists(
        st.tuples(st.floats(0.0, 500.0), st.booleans(), st.none() | st.floats(0.0, 60.0)),
        max_size=50,
    )
)
def test_rounds_are_never_lost_and_never_pile_up(
    steps: list[tuple[float, bool, float | None]],
) -> None:
    """M-5, M-6: whatever the pauses and answers are, each kind has one next time, and it comes."""
    now = 0.0
    ahead = rounds.begin(now, maintenance_s=100.0, association_s=10.0)
    for pause_s, was_answered, more_after_s in steps:
        now += pause_s
        one = rounds.due(ahead, now)
        assert (one is None) is (rounds.wait_s(ahead, now) > 0)
        if one is None:
            continue
        assert one.next_s == min(other.next_s for other in ahead)
        ahead = rounds.after(ahead, one, now, was_answered=was_answered, more_after_s=more_after_s)
        assert sorted(other.what for other in ahead) == ["association", "maintenance"]
        assert all(other.next_s <= now + other.every_s for other in ahead)
        assert rounds.due(ahead, now) is not one
