"""What sends a message into a channel of Discord, with a person whom its receiver paired.

Discord knows a repeat by its nonce, for some minutes: what may have arrived is sent again within
the same try, which is shorter; after that it isn't.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ...contracts import Said
from ..answers import Unclear
from ..chats.calls import CallFailed
from ..chats.fields import text_in
from ..chats.files import with_bytes
from ..chats.partner import ChatPartner
from ..chats.post import mark_of
from ..chats.sender import ChatSender
from ..contract import ChannelContext
from ..network_api import SentFile
from .composition import body_of, nonce_of, texts_of
from .wire import DiscordApi

if TYPE_CHECKING:
    from .section import DiscordBot

REPEATS: Final = (0.2, 2.0)
"""After how many seconds what is unclear is sent again."""
_Part = tuple[str, dict[str, Any], SentFile | None]
"""The channel where it is said, the body, and what goes with it."""


class DiscordSender(ChatSender[DiscordApi, _Part]):
    """One bot's way out."""

    def __init__(self, section: DiscordBot, context: ChannelContext) -> None:
        super().__init__(context, section.timeout_s)
        self._section = section

    def __repr__(self) -> str:
        return f"DiscordSender({self._section.bot!r})"

    def token(self) -> str:
        return self._section.secret(self._context.home)

    def opened_with(self, token: str) -> DiscordApi:
        return DiscordApi(token, self._section.api_url)

    async def planned(self, api: DiscordApi, said: Said, partner: ChatPartner) -> Sequence[_Part]:
        channel, reply, is_own = await _place_of(api, partner)
        said, files = await with_bytes(self._context, said)
        parts = texts_of(said, self._context.console_url)
        asks = parts.asks if is_own else ""
        texts: list[_Part] = [
            (
                channel,
                body_of(
                    text,
                    nonce=nonce_of(said.id, at),
                    reply=reply if at == 1 else "",
                    asks=asks if at == len(parts.texts) else "",
                ),
                None,
            )
            for at, text in enumerate(parts.texts, 1)
        ]
        return texts + [
            (
                channel,
                body_of("", nonce=nonce_of(said.id, at)),
                SentFile(name=file.name, type=file.type, data=data),
            )
            for at, (file, data) in enumerate(files, len(texts) + 1)
        ]

    async def hand_over(self, api: DiscordApi, part: _Part) -> str:
        channel, body, file = part
        sent = await _posted(api, f"/channels/{channel}/messages", body, file)
        return mark_of(self._context.name, channel, text_in(sent, "id"))


async def _posted(api: DiscordApi, path: str, body: dict[str, Any], file: SentFile | None) -> Any:
    """Send it, again while that is unclear. Raises: CallFailed."""
    for pause_s in REPEATS:
        try:
            return await api.call("POST", path, body, file=file)
        except CallFailed as failed:
            if not isinstance(failed.answer, Unclear):
                raise
            await asyncio.sleep(pause_s)
    return await api.call("POST", path, body, file=file)


async def _place_of(api: DiscordApi, partner: ChatPartner) -> tuple[str, str, bool]:
    """Return the channel where it is said, the message that it answers there among others, and
    whether the channel is the person's own. Raises: CallFailed."""
    head = partner.head
    if head is not None and not head.is_direct:
        number = head.message.split(" ")[1]
        return head.room, number, False
    if partner.paired.room:
        return partner.paired.room, "", True
    opened = await api.call("POST", "/users/@me/channels", {"recipient_id": partner.paired.address})
    return text_in(opened, "id"), "", True
