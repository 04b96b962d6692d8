"""What sends a message into a conversation of Slack, with a person whom its receiver paired.

Slack knows no repeats. Which effect a message says stands in its metadata, so what may have arrived
is looked for once; what isn't found may come yet, and isn't sent again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ...contracts import Said
from ..answers import Unclear
from ..chats.calls import CallFailed
from ..chats.fields import text_in
from ..chats.files import named_in, with_bytes
from ..chats.partner import ChatPartner
from ..chats.sender import ChatSender
from ..contract import ChannelContext
from ..network_api import SentFile
from . import happenings
from .composition import call_of, composed
from .wire import SlackApi

if TYPE_CHECKING:
    from .section import SlackAccount

MAY_NOT: Final = "missing_scope"
"""What Slack says of an app without the right `files:write`."""
SEARCHED_MAX: Final = 15
"""Newest messages among which one is looked for."""


class SlackCall(msgspec.Struct, frozen=True, kw_only=True):
    """A message to send, and what it is looked for by."""

    body: dict[str, Any]
    effect: str = ""
    """Empty: it shows a file."""
    part: int = 0


class SlackSender(ChatSender[SlackApi, SlackCall]):
    """One app's way out."""

    def __init__(self, section: SlackAccount, context: ChannelContext) -> None:
        super().__init__(context, section.timeout_s)
        self._section = section

    def __repr__(self) -> str:
        return f"SlackSender({self._section.bot!r})"

    def token(self) -> str:
        return self._section.bot_secret(self._context.home)

    def opened_with(self, token: str) -> SlackApi:
        return SlackApi(token, self._section.api_url)

    async def planned(self, api: SlackApi, said: Said, partner: ChatPartner) -> Sequence[SlackCall]:
        channel, thread, is_own = await _place_of(api, partner)
        said, kept = await _with_files(self._context, api, said)
        parts, asks = composed(said, self._context.console_url)
        texts = [
            SlackCall(
                body=call_of(
                    part,
                    channel=channel,
                    thread=thread,
                    effect=said.id,
                    asks=asks if is_own and part is parts[-1] else "",
                ),
                effect=said.id,
                part=part.number,
            )
            for part in parts
        ]
        where = {"channel_id": channel} | ({"thread_ts": thread} if thread else {})
        shown = [SlackCall(body={"files": [one]} | where) for one in kept]
        return texts + shown

    async def hand_over(self, api: SlackApi, part: SlackCall) -> str:
        if not part.effect:
            await api.call("files.completeUploadExternal", part.body)
            return ""
        try:
            await api.call("chat.postMessage", part.body)
        except CallFailed as failed:
            if not (isinstance(failed.answer, Unclear) and await _is_there(api, part)):
                raise
        return ""  # a reply shows the metadata of what it's to


async def _with_files(
    context: ChannelContext, api: SlackApi, said: Said
) -> tuple[Said, list[dict[str, str]]]:
    """Have Slack keep the files of a message before anything is said -> what shows each. Where the
    app may send none, the text names them. Raises: CallFailed."""
    named, (said, files) = said, await with_bytes(context, said)
    kept: list[dict[str, str]] = []
    for file, data in files:
        try:
            id_ = await api.keep(SentFile(name=file.name, type=file.type, data=data))
        except CallFailed as failed:
            if MAY_NOT not in failed.answer.reason:
                raise
            return named_in(named), []
        kept.append({"id": id_, "title": file.name})
    return said, kept


async def _is_there(api: SlackApi, part: SlackCall) -> bool:
    """Whether a message can be seen; False: nobody knows."""
    asked = {"channel": part.body["channel"], "limit": SEARCHED_MAX, "include_all_metadata": True}
    method = "conversations.history"
    if thread := part.body.get("thread_ts"):
        method = "conversations.replies"
        asked |= {"ts": thread, "limit": 1_000}
    with contextlib.suppress(CallFailed):
        own = await api.own()
        found = happenings.messages_in(await api.call(method, asked))
        return (part.effect, part.part) in {happenings.effect_in(one, own) for one in found}
    return False


async def _place_of(api: SlackApi, partner: ChatPartner) -> tuple[str, str, bool]:
    """Return the channel where it is said, the thread in it, and whether the channel is the
    person's own. Raises: CallFailed."""
    head = partner.head
    if head is not None:
        ts, thread = happenings.place_in(head.message)
        # Among others it's said below what it answers.
        return head.room, thread if head.is_direct else thread or ts, head.is_direct
    if partner.paired.room:
        return partner.paired.room, "", True
    opened = await api.call("conversations.open", {"users": partner.paired.address})
    return text_in(opened, "channel", "id"), "", True
