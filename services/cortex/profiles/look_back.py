"""What a conversation opens at a pause: the model is asked once what to remember.

It is no session of its own, but a loop of the conversation's (`core.pauses`).
"""

from __future__ import annotations

from functools import partial

from ..core import pauses
from ..core.context.history import memorable
from ..core.draft import Draft
from ..core.draft.profile import ModelQuestion, OpenSession, Profile
from ..thought.transcript import transcript

PURPOSE = "save"
PROMPT = "save.md.j2"


async def question(session: OpenSession, draft: Draft) -> ModelQuestion | None:
    """Offer memory what it was not offered yet. None: there is nothing to ask about."""
    offer = await session.unsaved(draft.state.unsaved_from)
    if not offer.has_words:
        pauses.skip(draft, offer)
        return None
    text = transcript(row for chunk in offer.chunks for row in memorable(chunk))
    return ModelQuestion(
        partial(session.reflect, draft, text, purpose=PURPOSE, prompt=PROMPT),
        lambda draft, answer: pauses.conclude(draft, answer, offer),
    )


PROFILE = Profile(
    name="look_back",
    purpose=PURPOSE,
    prompt=PROMPT,
    begins={},
    question=question,
    give_way=pauses.give_way,
    calls_max=1,
    tier="cheap",
    effort="low",
    max_tokens=4096,
    is_thread_shown=False,
    asks_again=False,
)
