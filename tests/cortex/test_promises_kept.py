"""A model that says it will come back and ends its turn: the story through all services."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cortex.test_wires import WAYS
from tests.support.messages_api import Reply, calls, says
from tests.support.messages_replies import said
from tests.support.stack import running_stack
from tests.support.talk import Talk

SERVICES: Final = ("memory", "scheduler", "delivery", "cortex")
PROMISE: Final = "It isn't there yet. I'll look again in a moment."
COME: Final = "Your parcel has come."


def behave(body: dict[str, Any]) -> Reply:
    """Answer as a model does that forgets to plan, until it reads that nothing is planned."""
    last = said(body)[-1]["content"]
    text = "\n".join(str(block.get("text", block.get("content", ""))) for block in last)
    if "Nobody has heard this answer yet" in text:
        return calls("schedule_followup", {"delay_seconds": 1, "reason": "look for the parcel"})
    if "[Follow-up due]" in text:
        return says(COME)
    return says(PROMISE)


@pytest.mark.parametrize("name", WAYS)
async def test_who_was_told_that_one_will_look_again_hears_of_it(tmp_path: Path, name: str) -> None:
    """The promise is said once, when it is planned, and kept: by either wire."""
    async with WAYS[name].running() as api:
        api.behave = behave
        sections = {
            "model": {"main": "wired"},
            "autonomy": {"cooldown_ms": 0},
            "models": {"wired": {"provider": name, "model": "model-test", "base_url": api.url}},
        }
        async with running_stack(tmp_path, SERVICES, **sections) as stack:
            talk = await Talk.open(stack, "ann:vigil:t1")
            await talk.ended(await talk.say("has my parcel come?"))
            await talk.until(partial(_has_heard, talk, COME))
            await talk.close()
    assert talk.texts == [PROMISE, COME]
    notes = [note.code for turn in talk.turns for note in turn.notes]
    assert notes.count("promise_asked") == 1
    assert "promise_unkept" not in notes


def _has_heard(talk: Talk, text: str) -> bool:
    return text in talk.texts
