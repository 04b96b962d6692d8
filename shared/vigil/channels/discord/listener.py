"""What follows a bot's events by Discord's gateway: what people who are paired write becomes their
messages.

How far was read is stored once a message is, and a session is resumed from there, also after a
restart. Where it can't be, what was missed is read in the channels with people who are paired.
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

from msgspec.structs import replace

from ..answers import NotTaken
from ..chats.calls import CallFailed
from ..chats.fields import text_in
from ..chats.post import PostFile
from ..chats.posts import ChatReading
from ..contract import ChannelContext
from . import happenings
from .composition import body_of
from .gateway import DiscordGateway, SessionLost
from .happenings import DiscordMark, DiscordPost
from .wire import DiscordApi

if TYPE_CHECKING:
    from .section import DiscordBot

PAGE: Final = 100
PAGES_MAX: Final = 100
UPDATE_MESSAGE: Final = 7
STORED_EVERY: Final = 500
"""After so many events it's stored how far was read, also if nothing was for us."""


class DiscordReading:
    """What is done from one failure to the next."""

    def __init__(self, section: DiscordBot, context: ChannelContext, reading: ChatReading) -> None:
        self.was_heard = False
        self._clock = context.clock
        self._reading = reading
        self._token = section.secret(context.home)
        self._api = DiscordApi(self._token, section.api_url)
        self._gateway: DiscordGateway | None = None
        self._own = ""
        self._mark = happenings.mark_of(reading.place.next)
        """How far was read, with what isn't stored yet."""

    async def close(self) -> None:
        if self._gateway is not None:
            await self._gateway.close()
        await self._api.close()

    async def run(self) -> NoReturn:
        self._own = text_in(await self._api.call("GET", "/users/@me"), "id")
        if not self._reading.place.next:
            # What lay there before the bot was ever read isn't taken in.
            now = happenings.snowflake_at(self._clock.now().timestamp())
            self._mark = DiscordMark(newest=now)
            await self._store()
        is_resumed = bool(self._mark.session)
        url = self._mark.url if is_resumed else await self._api.gateway_url()
        try:
            socket = await self._api.socket(url)
            self._gateway = DiscordGateway(socket, self._token, self._mark)
            async for kind, data, seq in self._gateway.events():
                await self._take_event(kind, data, seq)
        except CallFailed as failed:
            # Where it was to be resumed nobody may answer any more.
            if isinstance(failed, SessionLost) or (is_resumed and not self.was_heard):
                self._mark = DiscordMark(newest=self._mark.newest)
            await self._store()
            raise
        raise CallFailed(NotTaken(reason="the gateway has ended"))

    async def _store(self) -> None:
        await self._reading.store(happenings.stored_of(self._mark))

    # ------------------------------------------------------------ what comes

    async def _take_event(self, kind: str, data: Any, seq: int) -> None:
        if kind == "READY":
            await self._catch_up()
            # Only now: a session that is resumed tells nothing of what was before it.
            url, session = text_in(data, "resume_gateway_url"), text_in(data, "session_id")
            self._mark = replace(self._mark, session=session, seq=seq, url=url)
            await self._store()
        else:
            found = happenings.post_of(kind, data, self._own)
            is_stored = await self._take(found)
            self._mark = replace(self._mark, seq=seq)
            if found is not None and is_stored:
                self._note(found)
                await self._store()
                await self._show_that_it_came(found)
            elif seq % STORED_EVERY == 0:
                await self._store()
        self.was_heard = True
        self._reading.show("listening")

    def _note(self, post: DiscordPost) -> None:
        if not post.press[0]:
            self._mark = self._mark.with_message(post.message)

    async def _take(self, found: DiscordPost | None) -> bool:
        """Take a post in; whether a person's message is stored now."""
        if found is None or (found.press[0] and not found.is_direct):
            return False  # only who is asked may decide
        return await self._reading.take(found, partial(self._say, found), self._fetch)

    async def _fetch(self, file: PostFile, bytes_max: int) -> bytes:
        """Get a file. Raises: CallFailed, InvalidInput."""
        return await self._api.file(file.place, bytes_max)

    async def _catch_up(self) -> None:
        """Read what was missed in channels with people who are paired. How far is noted at the end:
        what is newer in one channel says nothing of another."""
        taken: list[DiscordPost] = []
        newest = int(self._mark.newest)
        for person in await self._reading.people():
            for each in person.addresses:
                if each.room:
                    paired = int(happenings.snowflake_at(each.at.timestamp()))
                    taken += await self._read_on(each.room, max(newest, paired))
        for one in taken:
            self._note(one)

    async def _read_on(self, channel: str, after: int) -> list[DiscordPost]:
        taken: list[DiscordPost] = []
        for _ in range(PAGES_MAX):
            path = f"/channels/{channel}/messages?after={after}&limit={PAGE}"
            try:
                data = await self._api.call("GET", path)
            except CallFailed as failed:
                if failed.is_token_refused or not failed.is_final:
                    raise
                return taken  # a channel that is no longer there
            found = happenings.messages_in(data)
            for one in found:
                post = happenings.post_of("MESSAGE_CREATE", one, self._own)
                if post is not None and await self._take(post):
                    taken.append(post)
            if len(found) < PAGE:
                break
            after = int(text_in(found[-1], "id"))
        return taken

    # ------------------------------------------------------------ what is said

    async def _show_that_it_came(self, post: DiscordPost) -> None:
        id_, secret = post.press
        if id_:
            answer = {"type": UPDATE_MESSAGE, "data": {"components": []}}
            path = f"/interactions/{id_}/{secret}/callback"
            await self._try("POST", path, answer, is_open=True)
        else:
            await self._try("POST", f"/channels/{post.room}/typing")

    async def _say(self, post: DiscordPost, text: str) -> None:
        body = body_of(text, nonce="", reply="" if post.is_direct else post.message)
        await self._try("POST", f"/channels/{post.room}/messages", body)

    async def _try(
        self, method: str, path: str, body: Any = None, *, is_open: bool = False
    ) -> None:
        """Do what may fail: it's nobody's matter."""
        with contextlib.suppress(CallFailed):
            await self._api.call(method, path, body, is_open=is_open)
