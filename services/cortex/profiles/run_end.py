"""What is asked at the end of a run of the timetable, as JSON: which facts it found (FLOW F-9), and
what else it came across (SPEC J-3). Pure."""

from __future__ import annotations

from functools import partial
from typing import Final

from vigil.facts.shape import words_of

from ..core.cycles import extraction, grounds, run_facts
from ..core.draft import Draft
from ..core.draft.profile import Inquiry, ModelQuestion, OpenSession, Profile
from ..core.tools import formed_answer
from ..thought.transcript import so_far


async def facts_question(session: OpenSession, draft: Draft) -> ModelQuestion | None:
    """Ask for the facts, with all that happened. None: that is to be committed first."""
    if draft.is_dirty:
        return None
    shapes = run_facts.shapes_of(draft.state)
    asked = Inquiry(
        purpose=run_facts.PURPOSE,
        profile=FACTS,
        prompt=FACTS.prompt,
        values={"facts": [f"{name}: {words_of(shape)}" for name, shape in shapes.items()]},
        rows=so_far(draft, session.newest()).rows,
        schema=run_facts.schema(shapes),
    )
    return ModelQuestion(partial(session.ask, draft, asked), run_facts.conclude, run_facts.fail)


FACTS: Final = Profile(
    name="run_facts",
    purpose=run_facts.PURPOSE,
    prompt="run_facts.md.j2",
    begins={},
    question=facts_question,
    calls_max=formed_answer.ASKED_MAX,
    tier="cheap",
    effort="low",
    max_tokens=1024,
    asks_again=False,
)


async def extraction_question(session: OpenSession, draft: Draft) -> ModelQuestion | None:
    """Ask what is worth keeping, with all that happened. None: the end is told first, or there is
    nothing to ask about."""
    if draft.is_dirty:
        return None
    done = so_far(draft, session.newest())
    shown = grounds.shown(done.told)
    if not shown:
        extraction.skip(draft)
        return None
    asked = Inquiry(
        purpose=extraction.PURPOSE,
        profile=EXTRACTION,
        prompt=EXTRACTION.prompt,
        values={"most": draft.policy.extracted_max},
        rows=done.rows[:1],  # without an answer about facts that was refused before
        schema=extraction.SCHEMA,
    )
    return ModelQuestion(
        partial(session.ask, draft, asked),
        partial(extraction.conclude, shown=shown),
        extraction.fail,
    )


EXTRACTION: Final = Profile(
    name="extraction",
    purpose=extraction.PURPOSE,
    prompt="extraction.md.j2",
    begins={},
    question=extraction_question,
    calls_max=1,
    tier="cheap",
    effort="low",
    max_tokens=1024,
    tells_end=False,
    asks_again=False,
)
