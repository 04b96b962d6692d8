"""What sends a message to a topic of ntfy.

The topic is in the body, never in an address. ntfy knows no repeats: what may have arrived isn't
sent again.

Source: https://docs.ntfy.sh/publish/#publish-as-json
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from ...clock import Clock
from ...contracts import Said
from ...net.ssrf import Rules
from ..answers import Answer
from ..post import GuardedPost
from .pages import conversation_of, request_of
from .words import not_theirs, shortened

if TYPE_CHECKING:
    from .ntfy import Ntfy

TITLE: Final = "Vigil"
JSON: Final = {"content-type": "application/json"}
BYTES_MAX: Final = 3_800
"""Of a text; ntfy takes 4,096 of a message, and makes a file of what is longer."""
URGENT, HIGH, USUAL = 5, 4, 3


class NtfySender:
    """One person's topic."""

    def __init__(
        self,
        section: Ntfy,
        rules: Rules,
        clock: Clock,
        *,
        topic: str,
        token: str,
        console_url: str,
    ) -> None:
        self._section = section
        self._console_url = console_url
        self._topic = str(topic)  # a secret isn't written down by mistake
        self._headers = JSON | ({"authorization": f"Bearer {token}"} if token else {})
        self._post = GuardedPost(rules, clock, timeout_s=section.timeout_s)

    def __repr__(self) -> str:
        return f"NtfySender({self._section.user!r})"

    async def send(self, said: Said, seq: int) -> Answer:
        """Try once; never raises but when cancelled."""
        if (refusal := not_theirs(said, self._section.user)) is not None:
            return refusal
        notice = notice_of(said, self._topic, self._console_url)
        return await self._post.send(self._section.url, msgspec.json.encode(notice), self._headers)

    async def close(self) -> None:
        await self._post.close()


def notice_of(said: Said, topic: str, console_url: str) -> dict[str, Any]:
    """Return what is published: louder where it's urgent, with buttons that lead to the console,
    and decide nothing by themselves."""
    actions = [
        ("Decide", request_of(said, console_url)),
        ("Open the conversation", conversation_of(said, console_url)),
    ]
    views = [{"action": "view", "label": label, "url": url} for label, url in actions if url]
    notice: dict[str, Any] = {
        "topic": topic,
        "title": TITLE,
        "message": shortened(said, BYTES_MAX, console_url),
        "priority": URGENT if said.is_urgent else HIGH if said.asks else USUAL,
    }
    if views:
        notice |= {"click": views[0]["url"], "actions": views}
    return notice
