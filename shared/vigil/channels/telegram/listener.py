"""What follows a bot's updates: what people who are paired write becomes their messages.

An update is dealt with and stored before the server is told to forget it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ...imports.aiogram import (
    AnswerCallbackQuery,
    EditMessageReplyMarkup,
    SendChatAction,
    SendMessage,
    TelegramMethod,
)
from ..answers import Unclear
from ..chats.buttons import NOTED
from ..chats.calls import CALL_S, CallFailed
from ..chats.post import PostFile
from ..chats.posts import ChatReading
from ..contract import ChannelContext
from . import albums, happenings
from .drafts import Drafts
from .happenings import TelegramPost
from .wire import BotApi, GetRawUpdates, WhereFile

if TYPE_CHECKING:
    from .section import TelegramBot

LIMIT: Final = 100
ALBUM_S: Final = 1.0
"""How long nothing more of an album comes before it's taken to be whole: its pictures arrive as
fast as they are uploaded to Telegram, which tells of each."""


class TelegramReading:
    """What is done from one failure to the next."""

    def __init__(self, section: TelegramBot, context: ChannelContext, reading: ChatReading) -> None:
        self.was_heard = False
        self._section = section
        self._reading = reading
        self._api = BotApi(section.secret(context.home), section.api_url)
        self._drafts = Drafts(self._api)

    async def close(self) -> None:
        await self._drafts.close()
        await self._api.close()

    async def run(self) -> NoReturn:
        """Follow the updates. Raises: CallFailed, Unavailable, BusError."""
        if not self._reading.place.next:
            await self._begin()
        # The server counts anew where nothing came for a week: a mark is shown to it once.
        mark: int | None = int(self._reading.place.next)
        counts: Counter[str] = Counter()
        while True:
            found = await self._updates(mark)
            self.was_heard = True
            self._reading.show("listening")
            before, counts = counts, albums.counts_of(found)
            whole = albums.settled(found, counts, before)
            for post in albums.posts_of(found[:whole], self._section.bot):
                await self._take(post)
            if whole < len(found):
                mark = happenings.update_id_of(found[whole])
                await self._reading.store(str(mark))
                await asyncio.sleep(ALBUM_S)
                continue
            mark = max((happenings.update_id_of(one) for one in found), default=-1) + 1 or None
            if mark is not None:
                await self._reading.store(str(mark))
                self._reading.show("listening")
            elif found:
                raise CallFailed(Unclear(reason="updates without ids"))

    async def _begin(self) -> None:
        """Store where reading begins: behind all that is there."""
        newest = await self._updates(-1, wait_s=0)
        marks = [happenings.update_id_of(one) + 1 for one in newest]
        await self._reading.store(str(max(marks, default=0)))

    async def _updates(self, mark: int | None, *, wait_s: float | None = None) -> list[Any]:
        wait = int(self._section.poll_s if wait_s is None else wait_s)
        asked = GetRawUpdates(
            offset=mark, limit=LIMIT, timeout=wait, allowed_updates=list(happenings.KINDS)
        )
        found = await self._api.call(asked, timeout_s=wait + CALL_S)
        if not isinstance(found, list):
            raise CallFailed(Unclear(reason="an answer without updates"))
        return found

    async def _take(self, found: TelegramPost) -> None:
        if found.button and not found.is_direct:
            return  # only who is asked may decide
        is_stored = await self._reading.take(found, partial(self._say, found), self._fetch)
        if is_stored:
            await self._reading.store()
            await self._show_that_it_came(found)

    async def _fetch(self, file: PostFile, bytes_max: int) -> bytes:
        """Get a file. Raises: CallFailed, InvalidInput."""
        file_info = await self._api.call(WhereFile(file_id=file.place), timeout_s=CALL_S)
        return await self._api.file(happenings.path_in(file_info), bytes_max)

    async def _show_that_it_came(self, post: TelegramPost) -> None:
        chat = int(post.room)
        if post.button:
            await self._try(AnswerCallbackQuery(callback_query_id=post.button, text=NOTED))
            await self._try(EditMessageReplyMarkup(chat_id=chat, message_id=post.message))
        else:
            await self._try(SendChatAction(chat_id=chat, action="typing"))
            if self._section.has_drafts and post.is_direct:
                self._drafts.show(chat, post.message, self._reading.writing(post))

    async def _say(self, post: TelegramPost, text: str) -> None:
        await self._try(SendMessage(chat_id=int(post.room), text=text))

    async def _try(self, method: TelegramMethod[Any]) -> None:
        """Do what may fail: it's nobody's matter."""
        with contextlib.suppress(CallFailed):
            await self._api.call(method, timeout_s=CALL_S)
