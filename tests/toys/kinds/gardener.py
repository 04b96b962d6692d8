"""A kind of session that the tests add: it looks after plants, and remembers what it saw. Pure."""

from __future__ import annotations

from services.cortex.core import loops, sway
from services.cortex.core.draft import Draft
from services.cortex.core.draft.profile import MEMORY, Profile, converse
from services.cortex.core.work.loop_end import end_loop
from services.cortex.model import ModelAnswer
from vigil.contracts import Cause, Control, SaveMemoryPayload, TextBlock


def begin(draft: Draft, cause: Cause, event: Control) -> None:
    """Begin a round with the plants that the start names."""
    start = event.payload.start
    assert start is not None
    draft.update(start=start)
    draft.row_text("user", "task", f"Plants: {start.prompt}")
    loops.begin(draft, cause, is_direct=False, sway=sway.of(start))


def conclude(draft: Draft, answer: ModelAnswer) -> None:
    """Let memory keep what was seen; nobody is told."""
    text = "".join(block.text for block in answer.blocks if isinstance(block, TextBlock))
    draft.usage.append(answer.usage)
    draft.row_text("assistant", "agent", text)
    draft.save_memory(SaveMemoryPayload(content=text, type="event"), draft.sway)
    end_loop(draft, "saved")


PROFILE = Profile(
    name="gardener",
    prompt="# This round\n\nLook after the plants. You speak to nobody.\n",
    begins={"start": begin},
    question=converse,
    conclude=conclude,
    tools=MEMORY,
    calls_max=3,
    tier="cheap",
    settings={"calls_max": "model.calls_max"},
)
