"""A loop with twenty commands, while services and the broker are killed (SPEC S-12, X-1, X-5)."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

import pytest

from services.executor.sandbox.choice import choose
from tests.chaos.arena import ENVIRONMENT
from tests.chaos.processes import Processes
from tests.support.executing import has_offered
from tests.support.messages_api import messages_api
from tests.support.messages_coder import coder
from tests.support.stack import Stack, running_broker, settings_of
from tests.support.talk import Talk
from vigil.broker.process import Broker
from vigil.contracts import CallTool, ToolResultEvent, decode_event
from vigil.settings.sections import Executor

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("halved_times")]

SERVICES: Final = ("cortex", "scheduler", "executor", "delivery")
ALWAYS: Final = ("executor", "cortex", "broker")
"""Who is killed at least once."""
TARGETS: Final = (*SERVICES, *ALWAYS)
CALLS: Final = 20
KILLS: Final = 40
KILLS_OF_LOOP: Final = 4
PATIENCE_S: Final = 240.0
MODEL: Final = {
    "VIGIL_MODEL": "claude-sonnet-5-5",
    "ANTHROPIC_API_KEY": "sk-ant-test-key",
    "VIGIL_MEMORY__RECALL_TOKENS": "0",
    "VIGIL_MEMORY__PAUSE_S": "0",
    "VIGIL_MODEL__CALLS_MAX": "40",
}
LINE: Final = re.compile(r"echo (line-\d+) >> (\S+)")


class Storm:
    """Kills by the dice, one after the other."""

    def __init__(self, broker: Broker, processes: Processes, seed: int, kills: int) -> None:
        self._broker = broker
        self._processes = processes
        self._random = Random(seed)
        more = kills - len(ALWAYS)
        self.targets = [*ALWAYS, *(self._random.choice(TARGETS) for _ in range(more))]
        self._random.shuffle(self.targets)

    async def rage(self, loop: int) -> None:
        """Kill those whose turn it is in that loop."""
        for target in self.targets[loop * KILLS_OF_LOOP :][:KILLS_OF_LOOP]:
            # Where in the loop a kill falls is up to chance.
            await asyncio.sleep(self._random.uniform(0.1, 2.0))
            if target == "broker":
                self._broker.kill()
            else:
                self._processes.kill(target, away_s=self._random.uniform(0.0, 0.5))


@pytest.mark.long
async def test_twenty_commands_survive_random_kills(tmp_path: Path, seed: int) -> None:
    """S-12, X-1, X-5: each command runs at most once; what is told to have run did; every loop ends
    with an answer."""
    if (choice := await choose(Executor())).kind == "off":
        pytest.skip(choice.problem)
    async with messages_api(coder) as api, running_broker(tmp_path) as broker:
        broker.watch()
        stack = Stack(broker, settings_of(tmp_path))
        environment = ENVIRONMENT | MODEL | {"ANTHROPIC_BASE_URL": api.url}
        processes = Processes(tmp_path, environment | {"NATS_URL": broker.url})
        storm = Storm(broker, processes, seed, KILLS)
        try:
            for service in SERVICES:
                processes.start(service)
            talk = await Talk.open(stack, "ann:vigil:t")
            await has_offered(talk.bus)
            await talk.say("hello")
            await talk.until(lambda: talk.said, PATIENCE_S)  # everything is up
            loops = -(-KILLS // KILLS_OF_LOOP)
            for number in range(loops):
                seq = await talk.say(f"append {CALLS} lines to f{number}.txt")
                begun = len(talk.turns)
                await talk.until(lambda b=begun: len(talk.turns) > b, PATIENCE_S)  # type: ignore[misc]
                await storm.rage(number)
                await talk.until(lambda s=seq: _is_answered(talk, s), PATIENCE_S)  # type: ignore[misc]
            await talk.until(lambda: len(talk.said) == 1 + loops, PATIENCE_S)
            assert talk.texts[1:] == [f"Appended {CALLS} lines."] * loops
            unknown = assert_at_most_once(talk, tmp_path / "workspaces" / "vigil" / "ann", loops)
            assert processes.faults() == []
            print(f"\n{dict(Counter(storm.targets))}, {loops * CALLS} commands, {unknown} unknown")
        finally:
            await processes.stop()
            await stack.close()


def assert_at_most_once(talk: Talk, folder: Path, loops: int) -> int:
    """Compare what was asked for, what was told and what was done; return how many ended without
    anybody knowing whether they ran."""
    called = [e for turn in talk.turns for e in turn.effects if isinstance(e, CallTool)]
    assert len({call.id for call in called}) == len(called) == loops * CALLS
    done = Counter(
        (line, file.name) for file in folder.glob("f*.txt") for line in file.read_text().split()
    )
    assert max(done.values()) == 1, [line for line, count in done.items() if count > 1]
    results: dict[str, ToolResultEvent] = {}
    for message in talk.log:
        if message.subject == talk.key.in_event("tool_result"):
            event = decode_event(message.data)
            assert isinstance(event, ToolResultEvent)
            assert event.payload.call_id not in results, "a call was answered twice"
            results[event.payload.call_id] = event
    unknown = 0
    for call in called:
        match = LINE.search(str(call.payload.input["command"]))
        assert match is not None
        told = results[call.id].payload
        if told.is_error:
            assert "ambiguous" in told.content, told.content
            unknown += 1
        else:
            assert done[match[1], match[2]] == 1, "it is told to have run, and did not"
    return unknown


def _is_answered(talk: Talk, seq: int) -> bool:
    return any(t.state.position >= seq and t.state.loop is None for t in talk.turns)
