"""What follows an app's events by Socket Mode: what people who are paired write becomes their
messages.

An event is dealt with and stored before Slack is told that it came: else it's told again, three
times. What was missed by then stands in the conversations with people who are paired, which are
read from where they were left each time a socket is opened.
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

from msgspec.structs import replace

from ..answers import NotTaken
from ..chats.buttons import NOTED
from ..chats.calls import CALL_S, CallFailed, token_refused
from ..chats.fields import dict_in, text_in
from ..chats.post import PostFile
from ..chats.posts import ChatReading
from ..contract import ChannelContext
from ..network_api import NetworkSocket
from . import happenings
from .composition import escaped, without_buttons
from .happenings import SlackPost
from .wire import SlackApi

if TYPE_CHECKING:
    from .section import SlackAccount

PAGE: Final = 200
PAGES_MAX: Final = 50
"""Of one conversation, read in one go."""
OVERLAP_S: Final = 600.0
"""How far before the newest that was stored is read again: Slack tells an event up to five minutes
later, and each is known by its id."""


class SlackReading:
    """What is done from one failure to the next."""

    def __init__(
        self, section: SlackAccount, context: ChannelContext, reading: ChatReading
    ) -> None:
        self.was_heard = False
        self._clock = context.clock
        self._reading = reading
        self._api = SlackApi(section.bot_secret(context.home), section.api_url)
        self._app = SlackApi(section.app_secret(context.home), section.api_url)
        self._socket: NetworkSocket | None = None
        self._own = ""
        self._newest = reading.place.next
        self._is_caught_up = False
        """Until then it isn't stored how far was read: what is newer in one conversation says
        nothing of another."""

    async def close(self) -> None:
        if self._socket is not None:
            await self._socket.close()
        await self._api.close()
        await self._app.close()

    async def run(self) -> NoReturn:
        self._own = await self._api.own()
        if not self._reading.place.next:
            # What lay there before the app was ever read isn't taken in.
            self._newest = f"{self._clock.now().timestamp():.6f}"
            await self._reading.store(self._newest)
        self._socket = await self._app.socket()
        await self._take_envelope(await self._socket.next(CALL_S))
        await self._catch_up()
        self._is_caught_up = True
        await self._reading.store(self._newest)
        self._reading.show("listening")
        while True:
            await self._take_envelope(await self._socket.next())
            self.was_heard = True
            self._reading.show("listening")

    # ------------------------------------------------------------ what comes

    async def _take_envelope(self, envelope: dict[str, Any]) -> None:
        kind, payload = text_in(envelope, "type"), dict_in(envelope, "payload")
        if kind == "disconnect":
            reason = text_in(envelope, "reason")
            if reason == "link_disabled":
                raise token_refused("Socket Mode is off")
            raise CallFailed(NotTaken(reason=f"Slack asks for a new socket: {reason}"))
        if kind == "events_api":
            await self._take(happenings.post_of(payload.get("event"), self._own))
        elif kind == "interactive":
            await self._take(happenings.press_of(payload), dict_in(payload, "message"))
        if self._socket is not None and (told := text_in(envelope, "envelope_id")):
            await self._socket.send({"envelope_id": told})

    async def _take(self, found: SlackPost | None, on: dict[str, Any] | None = None) -> None:
        if found is None or (found.is_press and not found.is_direct):
            return  # only who is asked may decide
        if found.thread:
            found = replace(found, reply_to=await self._replied(found))
        if not await self._reading.take(found, partial(self._say, found), self._fetch):
            return
        if not found.is_press:
            self._newest = max(self._newest, found.ts, key=float)
        await self._reading.store(self._newest if self._is_caught_up else None)
        if found.is_press:
            blocks = without_buttons(on or {}, NOTED)
            where = {"channel": found.room, "ts": found.ts, "text": text_in(on, "text")}
            await self._try("chat.update", where | {"blocks": blocks})

    async def _fetch(self, file: PostFile, bytes_max: int) -> bytes:
        """Get a file. Raises: CallFailed, InvalidInput."""
        return await self._api.file(file.place, bytes_max)

    async def _catch_up(self) -> None:
        """Read what was missed in conversations with people who are paired."""
        since = max(float(self._reading.place.next) - OVERLAP_S, 0.0)
        for person in await self._reading.people():
            for each in person.addresses:
                if each.room:
                    at = max(since, each.at.timestamp())
                    await self._read_back(each.room, f"{at:.6f}")

    async def _read_back(self, channel: str, since: str) -> None:
        asked = {"channel": channel, "oldest": since, "limit": PAGE}
        found: list[dict[str, Any]] = []
        for _ in range(PAGES_MAX):
            try:
                data = await self._api.call("conversations.history", asked)
            except CallFailed as failed:
                if failed.is_token_refused or not failed.is_final:
                    raise
                return  # a conversation that is no longer there
            found += happenings.messages_in(data)
            cursor = text_in(data, "response_metadata", "next_cursor")
            if not cursor:
                break
            asked["cursor"] = cursor
        for one in happenings.messages_in({"messages": found}):
            event = one | {"type": "message", "channel": channel, "channel_type": "im"}
            await self._take(happenings.post_of(event, self._own))

    async def _replied(self, post: SlackPost) -> str | None:
        """Return the effect that said what a message replies to; None: the app didn't."""
        asked = {
            "channel": post.room,
            "latest": post.thread,
            "oldest": post.thread,
            "inclusive": True,
            "limit": 1,
            "include_all_metadata": True,
        }
        try:
            data = await self._api.call("conversations.history", asked)
        except CallFailed:
            return None
        effects = [happenings.effect_in(one, self._own) for one in happenings.messages_in(data)]
        return next((one[0] for one in effects if one is not None), None)

    # ------------------------------------------------------------ what is said

    async def _say(self, post: SlackPost, text: str) -> None:
        body = {"channel": post.room, "text": escaped(text)}
        if not post.is_direct:
            body["thread_ts"] = post.thread or post.ts
        await self._try("chat.postMessage", body)

    async def _try(self, method: str, body: dict[str, Any]) -> None:
        """Do what may fail: it's nobody's matter."""
        with contextlib.suppress(CallFailed):
            await self._api.call(method, body)
