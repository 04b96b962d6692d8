"""Hands that survive: a script is written, run and reported, whoever is killed meanwhile (issue 5).

Everything is real: the services are processes, the model is reached by the Anthropic SDK over HTTP,
commands run in the sandbox. Only what the model says is scripted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from services.executor.sandbox.choice import choose
from tests.chaos.arena import ENVIRONMENT
from tests.chaos.processes import Processes, Step
from tests.support.executing import has_offered
from tests.support.messages_api import MessagesApi, messages_api
from tests.support.messages_coder import ORDER, PRIMES, RUN, coder
from tests.support.stack import Stack, running_broker, settings_of
from tests.support.talk import Talk
from vigil.contracts import CallTool, ToolResultBlock, Turn
from vigil.settings.sections import Executor

SERVICES: Final = ("cortex", "scheduler", "executor", "delivery")
PATIENCE_S: Final = 150.0
MODEL: Final = {
    "VIGIL_MODEL": "claude-sonnet-5-5",
    "ANTHROPIC_API_KEY": "sk-ant-test-key",
    "VIGIL_MEMORY__RECALL_TOKENS": "0",
    "VIGIL_MEMORY__PAUSE_S": "0",
    "VIGIL_MODEL__CALLS_MAX": "40",
}
STEPS: Final = (
    # Of a new process, the second call is the command: it ran, and nobody was told.
    Step(point="executor.call.ran", passage=2),
    # That call comes again, the model looks, and runs it again: claimed, and not run.
    Step(point="executor.call.claimed", passage=3),
    Step(point="executor.turn.received", passage=2),
    Step(point="executor.call.before_claim", passage=2),
    Step(point="executor.call.answered", passage=2),
    Step(point="executor.turn.before_ack", passage=2),
)


@asynccontextmanager
async def working(home: Path, *steps: Step) -> AsyncIterator[tuple[Stack, Processes, MessagesApi]]:
    """The broker and the model's endpoint in this process, the services as processes."""
    if (choice := await choose(Executor())).kind == "off":
        pytest.skip(choice.problem)
    async with messages_api(coder) as api, running_broker(home) as broker:
        stack = Stack(broker, settings_of(home))
        environment = ENVIRONMENT | MODEL | {"ANTHROPIC_BASE_URL": api.url}
        processes = Processes(home, environment | {"NATS_URL": broker.url})
        try:
            for service in SERVICES:
                processes.start(service, steps if service == "executor" else ())
            await has_offered(await stack.bus("admin"))
            yield stack, processes, api
        finally:
            await processes.stop()
            await stack.close()


def commands_of(turns: list[Turn]) -> list[CallTool]:
    called = [e for turn in turns for e in turn.effects if isinstance(e, CallTool)]
    return [call for call in called if call.payload.tool == "shell"]


def results_of(turns: list[Turn]) -> list[str]:
    blocks = [block for turn in turns for row in turn.rows for block in row.blocks]
    return [block.content for block in blocks if isinstance(block, ToolResultBlock)]


def assert_done(home: Path, talk: Talk) -> None:
    """It was said, it is true, and no command ran more often than it was asked for."""
    assert talk.texts == [f"The first 20 primes: {PRIMES}"]
    folder = home / "workspaces" / "vigil" / talk.key.user
    assert (folder / "primes.txt").read_text().split() == PRIMES.split()
    ran = (folder / "runs.txt").read_text().split()
    assert 1 <= len(ran) <= len(commands_of(talk.turns))


@pytest.mark.usefixtures("halved_times")
async def test_a_script_is_written_run_and_reported_whatever_dies(tmp_path: Path) -> None:
    """C-1, S-12, X-1: the executor ends at each step of a call's way; the loop goes on where it
    was, and what nobody knows the outcome of is looked at before it is run again."""
    async with working(tmp_path, *STEPS) as (stack, processes, api):
        over = asyncio.create_task(processes.plans_over(PATIENCE_S))
        talks: list[Talk] = []
        while not over.done() or not talks:
            talk = await Talk.open(stack, f"u{len(talks)}:vigil:t")
            talks.append(talk)
            seq = await talk.say(ORDER)
            await talk.until(lambda t=talk, s=seq: _is_answered(t, s), PATIENCE_S)  # type: ignore[misc]
            await talk.until(lambda t=talk: t.said, PATIENCE_S)  # type: ignore[misc]
        await over
        for talk in talks:
            assert_done(tmp_path, talk)
        ambiguous = [t for t in talks if any("ambiguous" in r for r in results_of(t.turns))]
        assert ambiguous
        for talk in ambiguous:
            assert len(commands_of(talk.turns)) > 1
            assert all(call.payload.input == {"command": RUN} for call in commands_of(talk.turns))
        ended = [e.crash_at.partition(":")[0] for e in processes.exits if e.is_crash]
        assert ended == [step.point for step in STEPS]
        assert all("/v1/messages" in request.path for request in api.requests)
        assert processes.faults() == []


async def test_a_worker_does_it_and_its_conversation_is_told(tmp_path: Path) -> None:
    """C-1: begun and told once, though the executor dies right after both; the person hears it."""
    steps = [Step(point="executor.spawn.after"), Step(point="executor.tell.after")]
    async with working(tmp_path, *steps) as (stack, processes, _):
        talk = await Talk.open(stack, "ann:vigil:t")
        await talk.say(f"in the background, {ORDER}")
        await talk.until(lambda: len(talk.said) >= 2, PATIENCE_S)
        await processes.plans_over(PATIENCE_S)
        assert talk.texts == ["I am at it.", f"The worker is done: {PRIMES}"]
        assert (tmp_path / "workspaces" / "vigil" / "ann" / "runs.txt").read_text() == "ran\n"
        started = await talk.bus.read("SYSTEM", ["system.*.*.*.in.control"])
        assert len({message.subject for message in started}) == 1
        results = [m for m in talk.log if m.subject == talk.key.in_event("tool_result")]
        outcomes = [turn.outcome for turn in talk.turns]
        assert outcomes.count("answered") == 2
        assert len(results) == 1
        assert processes.faults() == []


def _is_answered(talk: Talk, seq: int) -> bool:
    return any(t.state.position >= seq and t.state.loop is None for t in talk.turns)
