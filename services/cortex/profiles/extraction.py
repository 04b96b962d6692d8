"""Who says after a run of the timetable what else it came across, as JSON (SPEC J-3). Pure."""

from __future__ import annotations

from functools import partial

from ..core.cycles import extraction, grounds
from ..core.draft import Draft
from ..core.profile import Desk, Inquiry, ModelQuestion, Profile
from ..thought.transcript import so_far


async def question(desk: Desk, draft: Draft) -> ModelQuestion | None:
    """Ask what is worth keeping, with all that happened. None: the end is told first, or there is
    nothing to ask about."""
    if draft.is_dirty:
        return None
    done = so_far(draft, desk.newest())
    shown = grounds.shown(done.told)
    if not shown:
        extraction.skip(draft)
        return None
    asked = Inquiry(
        purpose=extraction.PURPOSE,
        profile=PROFILE,
        prompt=PROFILE.prompt,
        values={"most": draft.policy.extracted_max},
        rows=done.rows[:1],  # without an answer about facts that was refused before
        schema=extraction.SCHEMA,
    )
    return ModelQuestion(
        partial(desk.ask, draft, asked),
        partial(extraction.conclude, shown=shown),
        extraction.fail,
    )


PROFILE = Profile(
    name="extraction",
    purpose=extraction.PURPOSE,
    prompt="extraction.md.j2",
    begins={},
    question=question,
    calls_max=1,
    tier="cheap",
    effort="low",
    max_tokens=1024,
    tells_end=False,
    asks_again=False,
)
