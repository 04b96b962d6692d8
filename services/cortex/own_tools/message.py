"""send_message: say something before the answer is finished."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from vigil.contracts import SOCKET
from vigil.contracts.arguments import Arguments

from ..core import speech
from ..core.draft import Draft
from ..core.sway import Sway
from ..core.tools.declaration import Leave, OwnCall, Result, tool

NO_CHANNEL: Final = (
    "This exchange took in content from outside, which may not choose a channel. "
    "Leave `channel` out."
)


class SayNow(Arguments, frozen=True, kw_only=True):
    """Say something to the person now, before your answer is finished.

    Your final answer is sent by itself; use this only for an additional message.
    """

    text: Annotated[str, msgspec.Meta(min_length=1, max_length=16000)]
    channel: Annotated[str, msgspec.Meta(max_length=64)] | None = None


def _chooses_channel(given: SayNow, draft: Draft) -> bool:
    usual = SOCKET if draft.loop.is_direct else speech.usual(draft)
    return given.channel not in (None, usual)


def _obstacle(given: SayNow, call: OwnCall, draft: Draft) -> str | None:
    channels = (SOCKET, *draft.policy.channels)
    if given.channel is None or given.channel in channels:
        return None
    return f"There is no channel named {given.channel!r}; there is: {', '.join(channels)}."


@tool(
    risk="external",
    profiles=("channel",),
    obstacle=_obstacle,
    leave=Leave(is_needed=_chooses_channel, refusal=NO_CHANNEL),
    aims={"channel": "who"},
)
def send_message(given: SayNow, call: OwnCall, draft: Draft) -> Result:
    """Send it now; what the person accepted is said as theirs, past the gates."""
    if call.is_accepted:
        speech.say(draft, given.text, Sway.NONE, is_autonomous=False, channel=given.channel)
        return "Sent.", False
    blocked = speech.say_for_loop(draft, given.text, channel=given.channel)
    if blocked is not None:
        return f"Not sent: {blocked.text}.", True
    draft.update_loop(sends=draft.loop.sends + 1)
    return "Sent.", False
