"""A message takes another's place, and the cortex is killed before and after the turn of it."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from services.gateway.versions.endpoint import _replaced
from tests.chaos.killable import killable
from tests.chaos.processes import Step
from tests.support.examples import repeats
from tests.support.talk import Talk
from vigil.clock import SystemClock
from vigil.contracts import UserMessage, UserMessagePayload, decode_event, encode

POINTS: Final = (
    "cortex.wake.received",
    "cortex.event.read",
    "cortex.model.before_call",
    "cortex.commit.before",
    "cortex.commit.after",
)
PLAN: Final = POINTS[-repeats(len(POINTS), fast=2) :]


@pytest.mark.repeated
@pytest.mark.usefixtures("halved_times")
async def test_killed_anywhere_a_message_is_replaced_once(tmp_path: Path) -> None:
    """S-12: what it takes the place of is taken back once, and it is answered once: its own
    reminder stays, the older one is void."""
    async with killable(tmp_path, {"delivery": (), "memory": ()}, {}) as (stack, processes):
        talk = await Talk.open(stack, "ann:vigil:t")
        await stack.start("cortex")
        await talk.ended(await talk.say("hello"))
        seq = await talk.say("remind me in 5 hours to sow")
        await talk.ended(seq)
        await talk.until(lambda: len(talk.said) == 2)
        await stack.stop("cortex")
        (older,) = talk.turns[-1].state.follow_ups.values()
        assert "sow" in (older.message or older.reason)

        message = await talk.bus.get_of(talk.key, seq)
        assert message is not None
        event = decode_event(message.data)
        assert isinstance(event, UserMessage)
        replaced = await _replaced(talk.bus, talk.key, seq, event, ())
        text = "remind me in 6 hours to reap"
        wanted = UserMessage(
            id=str(uuid4()),
            session_key=str(talk.key),
            created_at=SystemClock().now(),
            payload=UserMessagePayload(text=text, replaces=replaced),
        )
        newer = await talk.store(talk.key.in_user, encode(wanted), wanted.id)
        processes.start("cortex", [Step(point=one) for one in PLAN])
        await talk.ended(newer)
        await talk.until(lambda: len(talk.said) == 3)
        await processes.plans_over(60.0)
        state = talk.turns[-1].state
        (kept,) = state.follow_ups.values()
        assert "reap" in (kept.message or kept.reason)
        (taken,) = state.taken_back
        assert (taken.said_from, taken.by) == (seq, newer)
        answers = [turn for turn in talk.turns if wanted.id in turn.ended]
        assert len(answers) == 1
        passed = [exit_.crash_at.partition(":")[0] for exit_ in processes.exits if exit_.is_crash]
        assert passed == list(PLAN)
        assert not [fault for fault in processes.faults() if "Traceback" in fault]
