"""A story as the API answers it. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from .telling import Story
from .verdict import verdict_of
from .voice import Voice
from .words import WhyStep, steps_of

STEPS_MAX: Final = 200
FIRST_STEPS: Final = 40
"""Of a story that is too long the beginning is kept, and the end, which matters more."""


class WhyAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why something was said, or was not. `summary` is the verdict in one sentence."""

    id: str
    kind: str
    """message, event, timer, turn, dead_letter or signal."""
    session_key: str
    verdict: str
    summary: str
    steps: tuple[WhyStep, ...]
    trace_id: str | None = None
    """The trace (W3C) under which the last step that has one was written."""
    cut: str | None = None
    """What is left out, if anything is."""


def answer_of(story: Story, voice: Voice, *, id_: str, kind: str, session_key: str) -> WhyAnswer:
    """Tell a story, cut to `STEPS_MAX` steps."""
    steps = steps_of(story, voice)
    cuts = ["the log was too long to read whole"] if story.is_cut else []
    if len(steps) > STEPS_MAX:
        cuts.append(f"{len(steps) - STEPS_MAX} steps in the middle are left out")
        steps = [*steps[:FIRST_STEPS], *steps[FIRST_STEPS - STEPS_MAX :]]
    verdict, summary = verdict_of(story, voice)
    parents = [f.traceparent for f in story.facts if f.traceparent is not None]
    return WhyAnswer(
        id=id_,
        kind=kind,
        session_key=session_key,
        verdict=verdict,
        summary=summary,
        steps=tuple(steps),
        trace_id=parents[-1].split("-")[1] if parents and parents[-1].count("-") == 3 else None,
        cut="; ".join(cuts) or None,
    )
