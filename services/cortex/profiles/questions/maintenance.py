"""Who writes merged summaries anew: one question for each, with its notes alone (M-6). Pure."""

from __future__ import annotations

from functools import partial

from vigil.contracts.board import SUMMARIES_MAX

from ...core.cycles import summary
from ...core.draft import Draft
from ...core.draft.profile import Inquiry, ModelQuestion, OpenSession, Profile, TemplateRow


async def question(session: OpenSession, draft: Draft) -> ModelQuestion | None:
    """Ask for the next text. None: what there is, is to be committed first."""
    if draft.is_dirty:
        return None
    notes = TemplateRow(
        template="summary_notes.md.j2",
        values={"notes": summary.left(draft)[0].text},
        at=draft.loop.begun_at,
    )
    asked = Inquiry(purpose=summary.PURPOSE, profile=PROFILE, prompt=PROFILE.prompt, rows=(notes,))
    return ModelQuestion(partial(session.ask, draft, asked), summary.conclude)


PROFILE = Profile(
    name="maintenance",
    purpose=summary.PURPOSE,
    prompt="summary_text.md.j2",
    begins={"start": summary.begin},
    question=question,
    calls_max=SUMMARIES_MAX,
    tier="cheap",
    effort="low",
    is_thread_shown=False,
    knows_person=False,
    asks_again=False,
)
