"""tell_agent: tell another agent of the person's something (ADR 72).

It's a row of that agent's home, about which its model is asked, by the gates of what comes unasked;
what it then says is to the person. Each agent keeps what it remembers to itself, and what content
from outside had a part in is marked there as it is here. Only where the person began the exchange
may one tell another: so no two agents talk with each other without end.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from vigil.contracts import ToldPayload
from vigil.contracts.arguments import Arguments
from vigil.contracts.events import AGENT_MESSAGE
from vigil.subjects import SessionKey

from ..core.draft import Draft, notifications
from ..core.tools import calls
from ..core.tools.declaration import OwnCall, Result, tool
from .tasks import no_other

ONLY_WITH_PERSON: Final = "Only where the person began the exchange may you tell another agent."


class TellAgent(Arguments, frozen=True, kw_only=True):
    """Tell another agent of the person's something that it should know. It knows nothing of this
    conversation, and answers the person, not you. For work, give it a task."""

    agent: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    text: Annotated[str, msgspec.Meta(min_length=1, max_length=8000)]


def _obstacle(given: TellAgent, call: OwnCall, draft: Draft) -> str | None:
    if not draft.loop.is_direct:
        return ONLY_WITH_PERSON
    return no_other(given.agent, draft) or calls.refusal(draft, call.use.input)


@tool(risk="write", profiles=("channel",), obstacle=_obstacle, aims={"agent": "who"})
def tell_agent(given: TellAgent, call: OwnCall, draft: Draft) -> Result:
    """Have it stored in the home of the other agent."""
    key = SessionKey.parse(draft.key)
    home = SessionKey(key.user, given.agent, draft.policy.home_thread)
    payload = ToldPayload(
        origin=draft.key,
        text=given.text,
        what=AGENT_MESSAGE,
        title=f"of your fellow agent {key.agent}",
        is_tainted=call.sway.is_outside,
    )
    notifications.notify(draft, str(home), payload)
    return f"Told {given.agent}.", False
