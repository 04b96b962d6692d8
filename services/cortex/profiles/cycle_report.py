"""Who says at the end of a cycle what came of it, as JSON (SPEC C-7). Pure."""

from __future__ import annotations

from functools import partial

from ..core.cycles import cycle, grounds
from ..core.cycles.report import SCHEMA
from ..core.draft import Draft
from ..core.draft.profile import Inquiry, ModelQuestion, OpenSession, Profile
from ..core.tools import formed_answer
from ..thought.transcript import so_far


async def question(session: OpenSession, draft: Draft) -> ModelQuestion | None:
    """Ask for the report, with all that happened. None: that is to be committed first."""
    if draft.is_dirty:
        return None
    done = so_far(draft, session.newest())
    asked = Inquiry(
        purpose=cycle.PURPOSE,
        profile=PROFILE,
        prompt=PROFILE.prompt,
        rows=done.rows,
        schema=SCHEMA,
    )
    shown = grounds.shown(done.told)
    return ModelQuestion(
        partial(session.ask, draft, asked),
        partial(cycle.conclude, shown=shown),
        cycle.fail,
    )


PROFILE = Profile(
    name="cycle_report",
    purpose=cycle.PURPOSE,
    prompt="cycle_report.md.j2",
    begins={},
    question=question,
    calls_max=formed_answer.ASKED_MAX,
    tier="cheap",
    effort="low",
    max_tokens=2048,
    asks_again=False,
)
