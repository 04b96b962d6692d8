"""ask_user: a question to the person, in a conversation or from a session that works for one."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from vigil.contracts.arguments import Arguments

from ..core import speech
from ..core.draft import Draft
from ..core.tools.declaration import Answer, OwnCall, tool
from ..core.work import approvals

ASKED: Final = (
    "The question was said to the person. End your turn now, without repeating it: their next "
    "message is the answer."
)
NOBODY_THERE: Final = (
    "No person began this exchange, so nobody waits for a question. Decide it yourself, or "
    "leave it."
)


class AskUser(Arguments, frozen=True, kw_only=True):
    """Ask the person a question that you can't go on without.

    In a conversation their next message is the answer. Ask once, with all that they need to know.
    """

    question: Annotated[str, msgspec.Meta(min_length=1, max_length=8000)]


@tool(risk="read", profiles=("channel", "worker"))
def ask_user(given: AskUser, call: OwnCall, draft: Draft) -> Answer:
    """Ask: in a conversation as a message, elsewhere as a request that is waited for."""
    if not draft.policy.profile.is_conversation:
        return approvals.question(draft, call.use)
    loop = draft.loop
    if not loop.is_direct:
        return NOBODY_THERE, True
    speech.say(draft, given.question, call.sway, is_autonomous=False, fence=loop.fence)
    draft.update_loop(sends=loop.sends + 1)
    return ASKED, False
