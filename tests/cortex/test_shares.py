"""A share for each person: of a day's tokens, and of what a replica does at once (C-9, S-1)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cortex.model import ModelAnswer, ModelRequest
from services.cortex.session import log as session_log
from services.cortex.session.engine import Engine
from services.cortex.session.inbox import Inbox
from services.cortex.session.shares import Shares
from tests.support.scripted_model import ScriptedModel, say
from tests.support.stack import Stack, running_stack
from tests.support.talk import Talk
from vigil.bus.bus import Message
from vigil.errors import Unavailable
from vigil.subjects import SessionKey

BUSY_MAX = 3
keys = st.builds(
    lambda user, thread: SessionKey.of(user, "vigil", f"t{thread}"),
    st.sampled_from(["ann", "bob"]),
    st.integers(0, 9),
)


# ---------------------------------------------------------------- sessions at once


@given(st.lists(st.tuples(keys, st.sampled_from(["begin", "go_on", "end"])), max_size=60))
def test_nobody_waits_for_another_and_nothing_gets_lost(moves: list[tuple[Any, str]]) -> None:
    """Whatever comes in whatever order: bounded, in order, and in the end everybody had a turn."""
    shares = Shares(BUSY_MAX)
    busy, waiting = set[SessionKey](), list[SessionKey]()
    for key, move in moves:
        mine = {other for other in busy if other.user == key.user}
        if move == "begin" and key not in waiting:
            may_begin = shares.begin(key)
            assert may_begin == (key in mine or len(mine) < BUSY_MAX)
            (busy.add if may_begin else waiting.append)(key)
        elif move == "go_on" and key in busy:
            shares.go_on(key)
        elif move == "end" and key not in waiting:
            _end(shares, key, busy, waiting)
        assert max(Counter(other.user for other in busy).values(), default=0) <= BUSY_MAX
        assert shares.waiting == len(waiting)
    while busy:
        _end(shares, min(busy, key=str), busy, waiting)
    assert not waiting


def _end(shares: Shares, key: SessionKey, busy: set[SessionKey], waiting: list[SessionKey]) -> None:
    busy.discard(key)
    following = shares.end(key)
    if following is not None:
        assert following == next(other for other in waiting if other.user == key.user)
        waiting.remove(following)
        busy.add(following)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    return ScriptedModel().install(monkeypatch)


@pytest.fixture
async def stack(tmp_path: Path, model: ScriptedModel) -> AsyncIterator[Stack]:
    sections = {"sessions": {"idle_release_s": 0.2, "busy_per_user_max": BUSY_MAX}}
    async with running_stack(tmp_path, services=("cortex",), **sections) as running:
        yield running


async def test_a_quiet_person_is_answered_while_another_one_has_many_waiting(
    stack: Stack, model: ScriptedModel
) -> None:
    """S-1: of the one who floods so many think at once, the rest waits, and nobody behind them; in
    the end each is answered, once, and none counts as taken over from a replica that died."""
    thinking: set[str] = set()
    most = 0

    async def behave(request: ModelRequest) -> ModelAnswer:
        nonlocal most
        if request.session_key.startswith("ann:"):
            return say("yes")
        thinking.add(request.session_key)
        most = max(most, len(thinking))
        await model.gate.wait()
        thinking.discard(request.session_key)
        return say("later")

    model.behave = behave
    flood = [await Talk.open(stack, f"mallory:vigil:t{n}") for n in range(10 * BUSY_MAX)]
    await asyncio.gather(*(talk.say("me") for talk in flood))
    quiet = await Talk.open(stack, "ann:vigil:t1")
    await quiet.ended(await quiet.say("hello"))
    assert len(thinking) <= BUSY_MAX
    model.gate.set()
    for talk in flood:
        await talk.until(lambda talk=talk: talk.turns and talk.turns[-1].ended)
        assert "taken_over" not in talk.notes
    assert most == BUSY_MAX
    assert sum(request.session_key.startswith("mallory:") for request in model.requests) == len(
        flood
    )


def test_a_person_is_not_kept_waiting_by_their_own_workers() -> None:
    shares = Shares(1)
    worker, other = (SessionKey(user="ann", agent="vigil", thread=f"_worker-{n}") for n in "ab")
    assert shares.begin(worker)
    assert not shares.begin(other)
    assert shares.begin(SessionKey.of("ann", "vigil", "t1"))


@pytest.mark.usefixtures("halved_times")
async def test_one_who_waits_is_served_by_another_replica_or_the_next_start(
    stack: Stack, model: ScriptedModel
) -> None:
    """X-5: what was put aside is given back when a replica stops."""

    async def behave(request: ModelRequest) -> ModelAnswer:
        await model.gate.wait()
        return say("yes")

    model.behave = behave
    talks = [await Talk.open(stack, f"mallory:vigil:t{n}") for n in range(BUSY_MAX + 3)]
    for talk in talks:
        await talk.say("me")
    async with asyncio.timeout(10):
        while len(model.requests) < BUSY_MAX:
            await asyncio.sleep(0.01)
    await stack.stop("cortex")
    model.gate.set()
    await stack.start("cortex")
    for talk in talks:
        await talk.until(lambda talk=talk: talk.turns and talk.turns[-1].ended)


async def test_one_that_is_opened_anew_keeps_its_place(
    tmp_path: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-1: a message that comes while its session closes opens it at once: nobody begins for it."""
    close, on_wake, commit = Inbox.close, Engine._on_wake, session_log.commit
    closing, joined = asyncio.Event(), asyncio.Event()
    thinking, most, engines = 0, 0, set[Engine]()

    async def slow_close(self: Inbox) -> None:
        if closing.is_set():
            await joined.wait()
        await close(self)

    async def failing_commit(*arguments: Any) -> int:
        if model.requests and not closing.is_set():
            closing.set()
            raise Unavailable("nobody confirms it")
        return await commit(*arguments)

    async def watched(self: Engine, wake: Message) -> None:
        engines.add(self)
        await on_wake(self, wake)
        if closing.is_set():
            joined.set()

    monkeypatch.setattr(Inbox, "close", slow_close)
    monkeypatch.setattr(Engine, "_on_wake", watched)
    monkeypatch.setattr(session_log, "commit", failing_commit)
    sections = {"sessions": {"idle_release_s": 0.2, "busy_per_user_max": 1}}
    async with running_stack(tmp_path, services=("cortex",), **sections) as stack:
        admin = await stack.bus("admin")

        async def behave(request: ModelRequest) -> ModelAnswer:
            nonlocal thinking, most
            if not closing.is_set():
                await model.gate.wait()
                return say("unheard")
            thinking += 1
            most = max(most, thinking)
            for _ in range(60):  # time for another one to begin
                await admin.api("INFO", {})
            thinking -= 1
            return say("yes")

        model.behave = behave
        first, second = [await Talk.open(stack, f"mallory:vigil:t{n}") for n in range(2)]
        await first.say("me")
        await _until(lambda: len(model.requests) == 1)
        await second.say("me, too")
        await _until(lambda: [engine.waiting_count for engine in engines] == [1])
        model.gate.set()
        await closing.wait()
        again = await first.say("and again")
        for talk in (first, second):
            await talk.until(lambda talk=talk: talk.turns and talk.turns[-1].ended)
        await first.ended(again)
    assert most == 1


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)
