"""Sessions that start sessions: the real cortex, scheduler and executor (SPEC C-1, S-12, X-5)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from services.cortex.model import ModelAnswer, ModelRequest
from services.executor.work import start_of
from tests.cortex.driver import answer, call
from tests.cortex.test_core_children import uses
from tests.support.examples import repeats
from tests.support.scripted_model import ScriptedModel
from tests.support.stack import Stack, running_stack
from tests.support.talk import Talk
from tests.support.tree import Tree
from vigil.contracts import Row, SpawnSession, TextBlock, ToolResultBlock, Turn, encode
from vigil.subjects import SessionKey

SERVICES = ("executor", "cortex", "scheduler", "delivery")
WORKERS = repeats(50, fast=12)
"""More than one answer may ask for."""


def kind_of(request: ModelRequest) -> str:
    return SessionKey.parse(request.session_key).kind


def shown(request: ModelRequest) -> list[str]:
    blocks = [block for row in request.rows for block in row.blocks]
    return [block.text for block in blocks if isinstance(block, TextBlock)]


def results(rows: tuple[Row, ...]) -> list[str]:
    blocks = [block for row in rows for block in row.blocks]
    return [block.content for block in blocks if isinstance(block, ToolResultBlock)]


def by_kind(**behave: Callable[[ModelRequest], Any]) -> Callable[[ModelRequest], Any]:
    """Answer by the kind of the session; what is not named says "Done."."""

    def respond(request: ModelRequest) -> Any:
        found = behave.get(kind_of(request))
        return answer("Done.") if found is None else found(request)

    return respond


def once(first: ModelAnswer, then: str = "Done.") -> Callable[[ModelRequest], ModelAnswer]:
    """Call tools at the first step of an exchange, and speak after that."""

    def respond(request: ModelRequest) -> ModelAnswer:
        is_later = request.rows[-1].source == "tool" or shown(request)[-1].startswith("[Result]")
        return answer(then) if is_later else first

    return respond


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    return ScriptedModel().install(monkeypatch)


@pytest.fixture
async def stack(tmp_path: Path, model: ScriptedModel) -> AsyncIterator[Stack]:
    sections: dict[str, Any] = {
        "sessions": {
            "busy_per_user_max": 2 * WORKERS,
            "children_max": WORKERS,
            "fan_out_max": 2 * WORKERS,
            "idle_release_s": 0.5,
        },
        "autonomy": {"ordered_per_hour": 2 * WORKERS},
        "executor": {"sandbox": "off"},
    }
    async with running_stack(tmp_path, services=SERVICES, **sections) as running:
        yield running


async def test_a_branch_sees_its_parents_transcript_and_not_the_call(
    stack: Stack, model: ScriptedModel
) -> None:
    """C-1: all that was said before, and nothing of the answer that forked it."""
    tree = await Tree.watch(stack)
    talk = await Talk.open(stack, "ann:vigil:t1")
    await talk.ended(await talk.say("my cat is called Ada"))
    asked: list[ModelRequest] = []

    def think(request: ModelRequest) -> ModelAnswer:
        asked.append(request)
        return answer("It is Ada.")

    branching = answer("Let me think.", *uses("branch", "what is the cat's name?"))
    model.behave = by_kind(channel=once(branching, "Ada!"), branch=think)
    await talk.ended(await talk.say("so what is my cat called?"))
    (request,) = asked
    told = shown(request)
    assert told[0] == "my cat is called Ada"
    assert told[-2:] == ["so what is my cat called?", "[Task]\n\nwhat is the cat's name?"]
    assert "Let me think." not in told
    assert "# This branch" in request.system[0]
    assert "send_message" not in [spec.name for spec in request.tools]
    assert talk.turns[-1].state.tasks == {}
    assert "It is Ada." in [text for turn in talk.turns for text in results(turn.rows)]
    await talk.until(lambda: talk.texts[-1:] == ["Ada!"])
    (key,) = tree.of_kind("branch")
    await tree.until(lambda: tree.state(key).loop is None)


async def test_a_branch_that_is_opened_again_inherits_the_same(
    stack: Stack, model: ScriptedModel
) -> None:
    """S-12: its cortex goes away in the middle, and another one takes it up."""
    tree = await Tree.watch(stack)
    talk = await Talk.open(stack, "ann:vigil:t1")
    await talk.ended(await talk.say("my cat is called Ada"))
    seen: list[list[str]] = []
    began = asyncio.Event()

    async def think(request: ModelRequest) -> ModelAnswer:
        seen.append(shown(request))
        began.set()
        await model.gate.wait()
        return answer("Ada.")

    model.behave = by_kind(channel=once(answer(*uses("branch", "who?"))), branch=think)
    seq = await talk.say("who is it?")
    await asyncio.wait_for(began.wait(), 20)
    await stack.stop("cortex")
    model.gate.set()
    await stack.start("cortex")
    await talk.ended(seq)
    assert len(seen) == 2
    assert seen[0] == seen[1]
    assert await tree.until(lambda: tree.are_over("branch", 1))


async def test_a_branch_whose_parent_is_gone_says_so(stack: Stack, model: ScriptedModel) -> None:
    tree = await Tree.watch(stack)
    talk = await Talk.open(stack, "ann:vigil:t1")
    held: list[ModelRequest] = []

    async def think(request: ModelRequest) -> ModelAnswer:
        held.append(request)
        return answer("I know nothing.")

    model.behave = by_kind(channel=once(answer(*uses("branch", "who?"))), branch=think)
    await stack.stop("executor")
    await talk.say("secret")
    turn = await talk.until(lambda: talk.turns[-1] if talk.turns else None)
    assert turn is not None
    # Gone as erasing leaves it: the executor has the turn in hand, and its text is deleted.
    admin = await stack.bus("admin")
    (spawn,) = [e for e in turn.effects if isinstance(e, SpawnSession)]
    await admin.api("STREAM.PURGE.SESSIONS", {"filter": talk.key.everything})
    child = talk.key.of_kind("branch", spawn.id)
    start = start_of(talk.key, spawn, 1, now=turn.created_at)
    await admin.publish(child.in_event("control"), encode(start))
    await tree.until(lambda: tree.are_over("branch", 1))
    assert shown(held[0]) == ["[Task]\n\nwho?"]
    assert "nothing_inherited" in [note.code for t in tree.turns[child] for note in t.notes]


async def test_a_worker_knows_its_task_and_its_result_is_told(
    stack: Stack, model: ScriptedModel
) -> None:
    """C-1: the conversation goes on meanwhile, and the result is an exchange of its own."""
    talk = await Talk.open(stack, "ann:vigil:t1")
    asked: list[ModelRequest] = []

    async def work(request: ModelRequest) -> ModelAnswer:
        asked.append(request)
        await model.gate.wait()
        return answer("There are 4.")

    def chat(request: ModelRequest) -> ModelAnswer:
        last = request.rows[-1]
        if last.source == "task":
            return answer("It came back: 4.")
        if last.source == "tool":
            return answer("On it.")
        spawn = answer(*uses("spawn_worker", "count them"))
        return spawn if shown(request)[-1] == "count" else answer("Hello.")

    model.behave = by_kind(channel=chat, worker=work)
    await talk.ended(await talk.say("count"))
    await talk.ended(await talk.say("hi"))
    chats = [request for request in model.requests if kind_of(request) == "channel"]
    assert "Under way" in chats[-1].present
    model.gate.set()
    await talk.until(lambda: talk.texts == ["On it.", "Hello.", "It came back: 4."])
    (request,) = asked
    assert shown(request) == ["[Task]\n\ncount them"]
    assert request.tier == "cheap"
    assert "# This task" in request.system[0]
    result = [r for r in model.requests if r.rows[-1].source == "task"][-1]
    assert "| There are 4." in shown(result)[-1]


@pytest.mark.repeated
async def test_fifty_workers_at_once(stack: Stack, model: ScriptedModel) -> None:
    """C-1: each is started once, works on its own, and tells its end."""
    tree = await Tree.watch(stack)
    talk = await Talk.open(stack, "ann:vigil:t1")
    at_work = 0
    begun = asyncio.Event()

    async def work(request: ModelRequest) -> ModelAnswer:
        nonlocal at_work
        at_work += 1
        if at_work == WORKERS:
            begun.set()
        await model.gate.wait()
        return answer(f"done: {shown(request)[-1].split()[-1]}")

    def chat(request: ModelRequest) -> ModelAnswer:
        last = request.rows[-1]
        step = len([row for row in request.rows if row.role == "assistant"])
        if last.source in ("person", "tool") and step * 20 < WORKERS:
            names = [f"n{i}" for i in range(step * 20, min(WORKERS, (step + 1) * 20))]
            return answer(*uses("spawn_worker", *names))
        return answer("Sent." if last.source == "tool" else "")

    model.behave = by_kind(channel=chat, worker=work)
    before = time.monotonic()
    await talk.say("all of it")
    async with asyncio.timeout(30):
        await begun.wait()
    model.gate.set()
    await talk.until(lambda: _has_heard(talk.turns, WORKERS), 60)
    print(f"\n{WORKERS} workers: {time.monotonic() - before:.2f} s")
    assert len(tree.of_kind("worker")) == WORKERS
    assert all(len(starts) == 1 for starts in tree.starts.values())
    assert talk.turns[-1].state.tasks == {}


def _has_heard(turns: list[Turn], count: int) -> bool:
    done = [note for turn in turns for note in turn.notes if note.code == "child_done"]
    return len(done) == count and turns[-1].state.loop is None and not turns[-1].state.queue


async def test_a_stop_reaches_the_grandchildren(stack: Stack, model: ScriptedModel) -> None:
    tree = await Tree.watch(stack)
    talk = await Talk.open(stack, "ann:vigil:t1")
    at_work = asyncio.Event()

    async def work(request: ModelRequest) -> ModelAnswer:
        at_work.set()
        await asyncio.Event().wait()
        raise AssertionError("never")

    model.behave = by_kind(
        channel=once(answer(*uses("branch", "why?"))),
        branch=once(answer(*uses("spawn_worker", "look"))),
        worker=work,
    )
    await talk.say("why?")
    await asyncio.wait_for(at_work.wait(), 20)
    await talk.control("stop")
    await tree.until(lambda: tree.are_over("branch", 1) and tree.are_over("worker", 1))
    assert {tree.turns[key][-1].outcome for key in tree.turns} == {"cancelled"}
    assert model.cancelled >= 1
    assert talk.turns[-1].state.loop is None


async def test_a_parent_that_was_away_takes_in_what_its_children_told(
    stack: Stack, model: ScriptedModel
) -> None:
    """X-5: two branches end while no cortex holds their parent; both results are in its loop."""
    tree = await Tree.watch(stack)
    talk = await Talk.open(stack, "ann:vigil:t1")
    model.behave = by_kind(
        channel=once(answer(*uses("branch", "a", "b")), "Both."),
        branch=lambda request: answer(f"re: {shown(request)[-1].split()[-1]}"),
    )
    await stack.stop("executor")
    seq = await talk.say("both")
    await talk.until(lambda: bool(talk.turns) and talk.turns[-1].state.tasks != {})
    await stack.stop("cortex")
    await stack.start("executor", "cortex")
    await talk.ended(seq)
    told = [text for turn in talk.turns for text in results(turn.rows)]
    assert sorted(told) == ["re: a", "re: b"]
    assert tree.are_over("branch", 2)


async def test_a_branch_without_a_word_is_ended_by_its_deadline(
    tmp_path: Path, model: ScriptedModel
) -> None:
    """S-12, S-8: the scheduler serves the deadlines of both streams."""

    async def think(request: ModelRequest) -> ModelAnswer:
        await asyncio.Event().wait()
        raise AssertionError("never")

    model.behave = by_kind(
        channel=once(answer(*uses("branch", "why?")), "I don't know."), branch=think
    )
    short = {"branch_timeout_s": 1.0}
    off = {"sandbox": "off"}
    async with running_stack(tmp_path, services=SERVICES, sessions=short, executor=off) as stack:
        tree = await Tree.watch(stack)
        talk = await Talk.open(stack, "ann:vigil:t1")
        await talk.ended(await talk.say("why?"))
        await talk.until(lambda: talk.texts == ["I don't know."])
        assert "child_lost" in talk.notes
        await tree.until(lambda: tree.are_over("branch", 1))


async def test_a_worker_remembers_by_the_memory_of_its_person(
    tmp_path: Path, model: ScriptedModel
) -> None:
    """M: a tool call of a session of SYSTEM is claimed and answered there."""
    save = call("memory_save", content="Ann likes tea")
    model.behave = by_kind(
        channel=once(answer(*uses("spawn_worker", "save it"))),
        worker=lambda r: answer("Saved it.") if r.rows[-1].source == "tool" else answer(save),
    )
    off = {"sandbox": "off"}
    async with running_stack(tmp_path, services=("memory", *SERVICES), executor=off) as stack:
        tree = await Tree.watch(stack)
        talk = await Talk.open(stack, "ann:vigil:t1")
        await talk.ended(await talk.say("save it"))
        await tree.until(lambda: tree.are_over("worker", 1))
        (key,) = tree.of_kind("worker")
        (told,) = [text for turn in tree.turns[key] for text in results(turn.rows)]
        assert told.startswith("Remembered")
        await talk.until(lambda: len(talk.texts) == 2)


async def test_the_rehearsal_model_shows_a_worker(tmp_path: Path) -> None:
    """A newcomer without a key sees a worker go and come back."""
    off = {"sandbox": "off"}
    async with running_stack(tmp_path, services=("memory", *SERVICES), executor=off) as stack:
        talk = await Talk.open(stack, "ann:vigil:t1")
        await talk.ended(await talk.say("remember that my locker code is 4711"))
        await talk.ended(await talk.say("research my locker code in the background"))
        await talk.until(lambda: len(talk.texts) == 3)
        started, back = talk.texts[1:]
        assert started == "A worker is looking into my locker code. I'll tell you what comes of it."
        assert back.startswith("Here is what came of it: My memory says:")
        assert "4711" in back
