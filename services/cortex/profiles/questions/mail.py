"""Who reads new mail and says which of it matters: one question, and no tools (ADR 51). Pure."""

from __future__ import annotations

from functools import partial

from ...core.cycles import mailbox
from ...core.cycles.mail_words import written_by
from ...core.draft import Draft
from ...core.draft.profile import Inquiry, ModelQuestion, OpenSession, Profile, TemplateRow
from ...core.tools import formed_answer


async def question(session: OpenSession, draft: Draft) -> ModelQuestion | None:
    """Ask which mails matter. None: what there is, is to be committed first."""
    if draft.is_dirty:
        return None
    mails = [
        {
            "sender": written_by(one),
            "subject": one.subject,
            "at": f"{one.came_at:%Y-%m-%d %H:%M}",
            "files": ", ".join(one.files),
            "text": one.text,
        }
        for one in mailbox.mails_of(draft)
    ]
    first = TemplateRow(
        template="mail_batch.md.j2", values={"mails": mails}, at=draft.loop.begun_at
    )
    rows = [row for row in session.newest() if row.at >= draft.loop.begun_at]
    asked = Inquiry(
        purpose=mailbox.PURPOSE,
        profile=PROFILE,
        prompt=PROFILE.prompt,
        rows=(first, *formed_answer.refused_rows(rows)),
        schema=mailbox.SCHEMA,
    )
    return ModelQuestion(partial(session.ask, draft, asked), mailbox.conclude)


PROFILE = Profile(
    name="mail",
    purpose=mailbox.PURPOSE,
    prompt="mail.md.j2",
    begins={"start": mailbox.begin},
    question=question,
    calls_max=formed_answer.ASKED_MAX,
    tier="cheap",
    effort="low",
    max_tokens=4096,
    is_thread_shown=False,
    knows_person=False,
    asks_again=False,
)
