"""What a look of the mind takes without the model: 50 goals and 10,000 actions are behind it.

All services run in this process; the model answers at once. Of 10,000 actions the board keeps the
newest 1,000.
"""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from bench.numbers import percentile, report
from services.cortex import core
from services.cortex.core import Draft, Policy
from services.cortex.core.draft.policy import Hours
from services.cortex.core.draft.profile import OwnersBoard, TemplateRow
from services.cortex.core.mind import report as reports
from services.cortex.thought.prompts import Prompts
from tests.support.goal_records import action_of, goal_of
from tests.support.scripted_model import ScriptedModel, say
from tests.support.stack import running_stack
from vigil.actions.log import KEPT_MAX
from vigil.board.kept import KeptBoard
from vigil.board.kinds.action import ACTIONS
from vigil.board.kinds.goal import GOALS
from vigil.bus.bus import Bus
from vigil.contracts import (
    Cause,
    Change,
    External,
    ExternalPayload,
    Loop,
    State,
    TextBlock,
    decode_turn,
    encode,
)
from vigil.minds import mind_of
from vigil.subjects import Scope

GOALS_COUNT: Final = 50
LOOKS: Final = 12
PEOPLE: Final = 40
TICK_S: Final = 1
DECIDED: Final = {"type": "respond", "text": "Red.", "because": "it is red", "confidence": 0.9}
CHANGE: Final = Change(by="bench")
LONG: Final = "Keep everything in order, and say so whenever it isn't. " * 35


async def measure(home: Path) -> None:
    """Report how large a report is, and how long looks take."""
    report("report_50_goals_kb", _report_kb(), "kB", aim="< 60", actions=10_000)
    model = ScriptedModel(lambda _: say(json.dumps({"decisions": [DECIDED]})))
    mind = {"enabled": True, "tick_seconds": TICK_S}
    with pytest.MonkeyPatch.context() as patch:
        model.install(patch)
        services = ("cortex", "scheduler", "executor")
        async with running_stack(home, services, mind=mind) as stack:
            bus = await stack.bus("admin")
            found = [await _look(bus, Scope("vigil", f"p{n}"), "e1") for n in range(PEOPLE)]
            took = sorted(event for event, _ in found)
            report("mind_event_p50_ms", percentile(took, 50), "ms", p99=percentile(took, 99))
            whose = Scope("vigil", "ann")
            await _fill(bus, whose)
            looks = []
            for number in range(LOOKS):
                looks.append((await _look(bus, whose, f"e{number}"))[1])
                await asyncio.sleep(TICK_S)  # looks are so far apart
            looks.sort()
            report("mind_look_ms", percentile(looks, 50), "ms", most=looks[-1], goals=GOALS_COUNT)


def _report_kb() -> float:
    now = datetime.now(UTC)
    goals = tuple(
        goal_of(id=f"{n:032x}", description=LONG, strategy=LONG, success_criteria=LONG)
        for n in range(GOALS_COUNT)
    )
    actions = tuple(action_of(id=f"{n:032x}", number=n, description=LONG) for n in range(10_000))
    due = [goal.id for goal in goals[:25]]
    mind = str(mind_of(Scope("vigil", "ann")))
    cause = Cause(id="look", seq=1, type="control")
    loop = Loop(cause=cause, fence=0, begun_at=now, is_direct=False)
    draft = Draft(mind, State(loop=loop), core.moment_at(now, Hours()), Policy())
    values = reports.values(OwnersBoard(goals=goals, actions=actions), due, [], draft)
    row = Prompts().rendered(TemplateRow(template="mind_report.md.j2", values=values, at=now))
    text = "".join(block.text for block in row.blocks if isinstance(block, TextBlock))
    return len(text.encode()) / 1000


async def _fill(bus: Bus, whose: Scope) -> None:
    now = datetime.now(UTC)
    goals, actions = KeptBoard(bus, GOALS), KeptBoard(bus, ACTIONS)
    for n in range(GOALS_COUNT):
        goal = goal_of(id=f"{n:032x}", last_checked_at=now, check_interval_s=86_400)
        await goals.replace(0, goal, CHANGE, now)
    for n in range(KEPT_MAX):
        action = action_of(id=f"{n:032x}", number=n + 1, outcome="success")
        await actions.replace(0, action, CHANGE, now)


async def _look(bus: Bus, whose: Scope, name: str) -> tuple[float, float]:
    """Let an event come in -> ms from stored to the decision stored, and of these for the look."""
    key = mind_of(whose)
    event = External(
        id=name,
        session_key=str(key),
        created_at=datetime.now(UTC),
        payload=ExternalPayload(source="bench", content="red", is_trusted=True),
    )
    ack = await bus.publish(key.in_event("external"), encode(event))
    begun = None
    follower = await bus.follow("SYSTEM", [key.everything], ack.seq)
    stored = None
    try:
        async for message in follower:
            stored = stored or message.stored_at
            if not key.is_turn(message.subject):
                continue
            codes = [note.code for note in decode_turn(message.data).notes]
            begun = message.stored_at if "look_begun" in codes else begun
            if "look_decided" in codes and begun is not None:
                return _ms(stored, message.stored_at), _ms(begun, message.stored_at)
    finally:
        await follower.close()
    raise AssertionError("no decision came")


def _ms(begun: datetime, ended: datetime) -> float:
    return (ended - begun).total_seconds() * 1000
