"""Who says at the end of a run of the timetable which facts it found, as JSON (FLOW F-9). Pure."""

from __future__ import annotations

from functools import partial

from vigil.facts.shape import words_of

from ..core.cycles import run_facts
from ..core.draft import Draft
from ..core.profile import Desk, Inquiry, ModelQuestion, Profile
from ..core.tools import formed_answer
from ..thought.transcript import so_far


async def question(desk: Desk, draft: Draft) -> ModelQuestion | None:
    """Ask for the facts, with all that happened. None: that is to be committed first."""
    if draft.is_dirty:
        return None
    shapes = run_facts.shapes_of(draft.state)
    asked = Inquiry(
        purpose=run_facts.PURPOSE,
        profile=PROFILE,
        prompt=PROFILE.prompt,
        values={"facts": [f"{name}: {words_of(shape)}" for name, shape in shapes.items()]},
        rows=so_far(draft, desk.newest()).rows,
        schema=run_facts.schema(shapes),
    )
    return ModelQuestion(partial(desk.ask, draft, asked), run_facts.conclude, run_facts.fail)


PROFILE = Profile(
    name="run_facts",
    purpose=run_facts.PURPOSE,
    prompt="run_facts.md.j2",
    begins={},
    question=question,
    calls_max=formed_answer.ASKED_MAX,
    tier="cheap",
    effort="low",
    max_tokens=1024,
    asks_again=False,
)
