"""The cortex is killed while it sums up and looks back (SPEC I-4, S-4, X-5; issue 4)."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from services.cortex.history import History
from services.cortex.session import log as session_log
from tests.chaos.killable import killable
from tests.chaos.processes import Processes, Step
from tests.support.talk import Talk
from vigil.clock import SystemClock
from vigil.contracts import SaveMemory
from vigil.observe.metrics import Metrics

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("halved_times")]

POINTS: Final = ("cortex.reflect.before_call", "cortex.reflect.after_call")
PATIENCE_S: Final = 60.0
WINDOW: Final = 12_000
TIMES: Final = {
    "VIGIL_MODEL__CONTEXT_TOKENS": str(WINDOW),
    "VIGIL_MEMORY__PAUSE_S": "2",
    "VIGIL_MEMORY__RECALL_TOKENS": "0",
}


def saved(talk: Talk) -> Counter[str]:
    effects = [e for t in talk.turns for e in t.effects if isinstance(e, SaveMemory)]
    facts = [re.findall(r"I like thing \d+", e.payload.content) for e in effects]
    return Counter(fact for found in facts for fact in found)


async def test_what_was_said_is_summed_up_and_saved_once(tmp_path: Path) -> None:
    """X-5: ends in the middle lose nothing, and nothing is handed to memory twice."""
    steps = [Step(point=point, passage=n) for n in (1, 2) for point in POINTS]
    async with killable(tmp_path, {"cortex": steps, "scheduler": ()}, TIMES) as (stack, processes):
        talk = await Talk.open(stack, "ann:vigil:t")
        number = 0
        while not _is_over(talk, processes, len(steps)):
            seq = await talk.say(f"I like thing {number}. {'word ' * 500}")
            number += 1
            assert number < 200
            await talk.until(lambda s=seq: _is_answered(talk, s), PATIENCE_S)  # type: ignore[misc]
        await talk.until(lambda: talk.turns[-1].state.unsaved_from == 0, PATIENCE_S)
        assert saved(talk) == Counter({f"I like thing {n}": 1 for n in range(number)})
        ends = [e.crash_at.partition(":")[0] for e in processes.exits if e.is_crash]
        assert ends == [step.point for step in steps]
        ended = Counter(event for turn in talk.turns for event in turn.ended)
        assert max(ended.values()) == 1
        positions = [turn.state.position for turn in talk.turns]
        assert positions == sorted(positions)
        counts, history = Metrics("cortex"), History(80, WINDOW)
        found = await session_log.load(talk.bus, talk.key, SystemClock(), counts, history)
        assert "I like thing 0" in found.history.summary
        print(f"\n{number} messages, {_compacted(talk)} summaries, {len(ends)} ends")


def _is_over(talk: Talk, processes: Processes, ends: int) -> bool:
    crashes = sum(e.is_crash for e in processes.exits)
    return crashes == ends and _compacted(talk) >= 2


def _compacted(talk: Talk) -> int:
    return sum(turn.outcome == "compacted" for turn in talk.turns)


def _is_answered(talk: Talk, seq: int) -> bool:
    return any(t.state.position >= seq and t.state.loop is None for t in talk.turns)
