"""Who says at the end of a run of the timetable which facts it found, as JSON (FLOW F-9). Pure."""

from __future__ import annotations

from functools import partial

from vigil.facts.shape import words_of

from ..core.cycles import run_facts
from ..core.draft import Draft
from ..core.profile import Desk, Inquiry, ModelQuestion, Profile, TemplateRow
from ..core.tools import formed_answer
from ..thought.transcript import transcript

ROWS_MAX = 60
"""The newest of a run that are shown."""


async def question(desk: Desk, draft: Draft) -> ModelQuestion | None:
    """Ask for the facts, with all that happened. None: that is to be committed first."""
    if draft.is_dirty:
        return None
    rows = [row for row in desk.newest() if row.at >= draft.loop.begun_at]
    tries = formed_answer.refused_rows(rows)
    told = rows[: len(rows) - len(tries)][-ROWS_MAX:]
    shapes = run_facts.shapes_of(draft.state)
    first = TemplateRow(
        template="cycle_so_far.md.j2",
        values={"transcript": transcript(told), "last_words": draft.loop.unsaid},
        at=draft.moment.now,
    )
    asked = Inquiry(
        purpose=run_facts.PURPOSE,
        profile=PROFILE,
        prompt=PROFILE.prompt,
        values={"facts": [f"{name}: {words_of(shape)}" for name, shape in shapes.items()]},
        rows=(first, *tries),
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
