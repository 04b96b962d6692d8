"""Memory is asked before a loop asks the model (SPEC M; issue 4; D-3, S-6, X-3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from services.cortex.core.context.recollection import shortened
from services.cortex.model import ModelRequest
from services.cortex.thought.recollector import EMPTY_FOR_S, Recollector
from services.memory import checks
from tests.cortex.driver import answer, call
from tests.support.scripted_memory import (
    EMPTY,
    NOTHING,
    ScriptedMemory,
    found,
    scripted_memory,
    view,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.stack import Stack, running_stack, settings_of
from tests.support.talk import Talk
from vigil.contracts import (
    ToolResultEvent,
    ToolResultPayload,
    encode,
)
from vigil.memory.client import MemoryClient
from vigil.memory.operations.recall import Recall
from vigil.observe.metrics import Metrics
from vigil.settings.config import Config
from vigil.subjects import Scope, SessionKey

ANN = SessionKey.of("ann", "vigil", "t1")


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    return ScriptedModel().install(monkeypatch)


@pytest.fixture
async def stack(tmp_path: Path, model: ScriptedModel) -> AsyncIterator[Stack]:
    sections: dict[str, Any] = {
        "memory": {"recall_tokens": 500, "recall_timeout_s": 0.5},
        "agents": {"crew": {"kind": "team", "members": ["ann", "ben"]}},
        "autonomy": {"cooldown_ms": 0},
    }
    async with running_stack(tmp_path, services=("cortex", "scheduler"), **sections) as running:
        yield running


@pytest.fixture
async def memory(stack: Stack) -> AsyncIterator[ScriptedMemory]:
    async with scripted_memory(stack) as scripted:
        yield scripted


def recalled(request: ModelRequest) -> list[str]:
    return [hit.memory.content for hit in request.situation.memories]


def notes_of(talk: Talk) -> list[tuple[str, str]]:
    return [(n.code, n.text) for t in talk.turns for n in t.notes if n.code.startswith("recall")]


async def test_every_call_of_a_loop_is_shown_what_was_recalled_for_it(
    stack: Stack, memory: ScriptedMemory, model: ScriptedModel
) -> None:
    """Issue 4: the `channel` session recalls before it answers; once for a loop."""
    tea, dog = view(1, "Ann likes tea"), view(2, "Ann has a dog", type="event")
    memory.answer = lambda _: found(tea, dog)
    plan = call("schedule_followup", delay_seconds=900, reason="x")
    model.behave = lambda r: answer("ok") if len(r.rows) > 1 else answer(plan)
    talk = await Talk.open(stack, str(ANN))
    await talk.ended(await talk.say("what do I drink?"))
    ((scope, question),) = memory.asked
    assert scope == Scope("vigil", "ann")
    assert (question.query, question.tokens, question.only_trusted) == (
        "what do I drink?",
        500,
        True,
    )
    assert question.counts
    assert [recalled(r) for r in model.requests] == [["Ann likes tea", "Ann has a dog"]] * 2
    shown = model.requests[0].present
    assert "\n- 2026-11-01, fact, chat:t9: Ann likes tea\n" in shown
    assert shown.endswith("- 2026-11-01, event, chat:t9: Ann has a dog")
    assert notes_of(talk) == [("recalled", f"2 memories ({tea.id}, {dog.id})")], "told once"
    await talk.ended(await talk.say("and you?"))
    assert memory.queries == ["what do I drink?", "and you?"]


async def test_no_memory_service_never_stops_an_answer(stack: Stack, model: ScriptedModel) -> None:
    talk = await Talk.open(stack, str(ANN))
    await talk.ended(await talk.say("hi"))
    assert talk.turns[-1].outcome == "answered"
    assert notes_of(talk) == [
        ("recall_degraded", "memory could not be reached; the session began so")
    ]
    assert model.requests[0].situation.memories == ()


async def test_a_memory_that_hangs_holds_an_answer_up_for_its_timeout(
    stack: Stack, memory: ScriptedMemory
) -> None:
    memory.answer = memory.waits
    talk = await Talk.open(stack, str(ANN))
    await talk.ended(await talk.say("hi"))
    assert talk.turns[-1].outcome == "answered"
    assert notes_of(talk) == [("recall_degraded", "no answer within 0.5 s; the session began so")]


async def test_what_is_left_of_memory_is_used_and_the_rest_is_told(
    stack: Stack, memory: ScriptedMemory, model: ScriptedModel
) -> None:
    """Issue 4: vectors away: replies still go out, marked degraded."""
    memory.answer = lambda _: found(view(1, "Ann likes tea"), degraded=("vectors",))
    talk = await Talk.open(stack, str(ANN))
    await talk.ended(await talk.say("hi"))
    assert recalled(model.requests[0]) == ["Ann likes tea"]
    assert [code for code, _ in notes_of(talk)] == ["recalled", "recall_degraded"]
    assert notes_of(talk)[1][1] == "vectors could not be searched; the session began so"


async def test_nothing_found_leaves_no_trace(stack: Stack, memory: ScriptedMemory) -> None:
    memory.answer = lambda _: NOTHING
    talk = await Talk.open(stack, str(ANN))
    await talk.ended(await talk.say("hi"))
    assert notes_of(talk) == []


async def test_a_message_that_comes_while_memory_is_asked_is_folded_at_once(
    stack: Stack, memory: ScriptedMemory
) -> None:
    """S-6, S-13: recalling holds nothing up but the answer."""
    memory.answer = memory.waits
    talk = await Talk.open(stack, str(ANN))
    await talk.say("one")
    async with asyncio.timeout(10):
        while not memory.asked:
            await asyncio.sleep(0.01)
    second = await talk.say("two")
    await talk.until(lambda: [t.outcome for t in talk.turns] == ["begun", "queued"])
    assert talk.turns[-1].state.fence == second
    memory.gate.set()
    await talk.ended(second)
    assert memory.queries == ["one", "two"]


async def test_follow_ups_and_outside_events_recall_too(
    stack: Stack, memory: ScriptedMemory, model: ScriptedModel
) -> None:
    plan = call("schedule_followup", delay_seconds=0, reason="how was the dentist?")
    model.behave = lambda r: answer(plan) if len(r.rows) == 1 else answer("ok")
    talk = await Talk.open(stack, str(ANN))
    await talk.say("bye")
    await talk.until(lambda: "how was the dentist?" in memory.queries)
    await talk.ended(await talk.outside("the build is red"))
    await talk.until(lambda: "the build is red" in memory.queries)
    assert all(question.only_trusted for _, question in memory.asked)


async def test_a_team_recalls_from_its_own_memory(
    stack: Stack, memory: ScriptedMemory, model: ScriptedModel
) -> None:
    """M-2, L-17: nothing of a single person's; the model is told who of them wrote."""
    model.behave = lambda _: answer("ok")
    talk = await Talk.open(stack, "team:crew:t1")
    await talk.ended(await talk.say("hi", by="ben"))
    assert [scope for scope, _ in memory.asked] == [Scope("crew", "team")]
    (request,) = model.requests
    assert [block.text for row in request.rows for block in row.blocks] == ["[ben] hi"]
    assert "# The person" not in "".join(request.system)
    assert "with a team: ann, ben." in request.present


async def test_messages_answered_together_are_searched_together(
    tmp_path: Path, model: ScriptedModel
) -> None:
    """S-13 `coalesce`."""
    sections: dict[str, Any] = {
        "memory": {"recall_tokens": 500},
        "agent": {"double_text": "coalesce"},
    }
    async with (
        running_stack(tmp_path, services=("cortex", "scheduler"), **sections) as stack,
        scripted_memory(stack) as memory,
    ):
        talk = await Talk.open(stack, str(ANN))
        await talk.say("my dog")
        await talk.ended(await talk.say("is ill"))
        assert memory.queries == ["my dog\nis ill"]


async def test_who_takes_a_loop_over_recalls_again(
    stack: Stack, memory: ScriptedMemory, model: ScriptedModel
) -> None:
    """S-12: killed while a tool runs, the loop goes on with its result, and its memories."""
    memory.answer = lambda _: found(view(1, "Ann likes tea"))
    model.behave = lambda r: (
        answer(call("memory_recall", query="tea")) if len(r.rows) == 1 else answer("Tea.")
    )
    talk = await Talk.open(stack, str(ANN))
    await talk.say("what do I drink?")
    await talk.until(lambda: bool(talk.turns) and talk.turns[-1].state.loop is not None)
    await stack.stop("cortex")
    loop = talk.turns[-1].state.loop
    assert loop is not None
    assert loop.waiting is not None
    payload = ToolResultPayload(call_id=loop.waiting.calls[0].effect_id, content="tea")
    event = ToolResultEvent(
        id="r1", session_key=str(ANN), created_at=datetime.now(UTC), payload=payload
    )
    seq = await talk.store(ANN.in_event("tool_result"), encode(event), event.id)
    await stack.start("cortex")
    await talk.ended(seq)
    assert [t.outcome for t in talk.turns] == ["continued", "answered"]
    assert memory.queries == ["what do I drink?"] * 2
    assert recalled(model.requests[-1]) == ["Ann likes tea"]
    assert [code for code, _ in notes_of(talk)] == ["recalled", "recalled"]


# ---------------------------------------------------------------- an empty memory


class HandClock:
    """Stands still until the test moves it."""

    def __init__(self) -> None:
        self.at = 100.0

    def now(self) -> datetime:
        return datetime(2026, 11, 20, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.at


async def test_an_empty_memory_is_not_asked_again_at_once(
    stack: Stack, memory: ScriptedMemory
) -> None:
    """It costs a newcomer nothing; what is saved is found within 1 s all the same (M-2)."""
    clock = HandClock()
    config: Config = settings_of(stack.settings.home, memory={"recall_tokens": 500}).config
    bus = await stack.bus("cortex")
    recollector = Recollector(
        memory=MemoryClient(bus), config=config, clock=clock, counts=Metrics("cortex", "c")
    )
    memory.answer = lambda _: EMPTY
    await recollector.recall(ANN, "one")
    await recollector.recall(ANN, "two")
    await recollector.recall(SessionKey.of("ann", "vigil", "t2"), "three")
    assert memory.queries == ["one"], "of the same memory, whatever the conversation"
    await recollector.recall(SessionKey.of("bob", "vigil", "t1"), "of another")
    assert memory.queries == ["one", "of another"]
    clock.at += EMPTY_FOR_S
    await recollector.recall(ANN, "four")
    assert memory.queries[2:] == ["four"]
    recollector.may_have_saved(ANN)
    await recollector.recall(ANN, "five")
    assert memory.queries[3:] == ["five"], "a tool may have saved something"
    memory.answer = memory.waits
    asking = asyncio.create_task(recollector.recall(SessionKey.of("cid", "vigil", "t"), "six"))
    while len(memory.asked) < 5:
        await asyncio.sleep(0)
    recollector.may_have_saved(SessionKey.of("cid", "vigil", "t"))
    memory.answer = lambda _: EMPTY
    memory.gate.set()
    await asking
    await recollector.recall(SessionKey.of("cid", "vigil", "t"), "seven")
    assert memory.queries[-1] == "seven", "the answer on its way told of the time before"


@pytest.mark.parametrize("text", ["tea\fmug", "\x1b[1mtea\x7f", "a\x00b"])
def test_what_is_searched_for_is_never_refused(text: str) -> None:
    """X-6: a page break in what the person pasted is no reason to answer without memory."""
    question = Recall(query=shortened(text), limit=3, only_trusted=True)
    assert checks.decode(msgspec.json.encode(question), Recall) == question


async def test_with_a_limit_of_zero_nothing_is_asked(tmp_path: Path, model: ScriptedModel) -> None:
    async with (
        running_stack(tmp_path, services=("cortex",)) as stack,
        scripted_memory(stack) as memory,
    ):
        talk = await Talk.open(stack, str(ANN))
        await talk.ended(await talk.say("hi"))
        assert memory.asked == []
        assert notes_of(talk) == []
