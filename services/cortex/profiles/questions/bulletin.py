"""Who puts into words what is known of a person: one question, with only that (C-2). Pure."""

from __future__ import annotations

from functools import partial

from ...core.cycles import bulletin
from ...core.draft import Draft
from ...core.draft.profile import Inquiry, ModelQuestion, OpenSession, Profile, TemplateRow
from ...core.work import children


async def question(session: OpenSession, draft: Draft) -> ModelQuestion | None:
    """Ask for the text. None: that it began is to be committed first."""
    given = draft.state.start
    if draft.is_dirty or given is None:
        return None
    first = TemplateRow(
        template="bulletin_material.md.j2",
        values={"material": given.prompt},
        at=draft.loop.begun_at,
    )
    asked = Inquiry(
        purpose=bulletin.PURPOSE,
        profile=PROFILE,
        prompt=PROFILE.prompt,
        values={"words_max": bulletin.basis_of(draft).words_max},
        rows=(first,),
    )
    return ModelQuestion(partial(session.ask, draft, asked), bulletin.conclude)


PROFILE = Profile(
    name="bulletin",
    purpose=bulletin.PURPOSE,
    prompt="bulletin_text.md.j2",
    begins={"start": children.begin},
    question=question,
    calls_max=1,
    tier="cheap",
    effort="low",
    is_thread_shown=False,
    knows_person=False,
    asks_again=False,
)
