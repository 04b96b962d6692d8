"""Slash commands in a chat: who obeys each, and those about the conversation as a whole.

Only at a terminal: what comes from a pipe may be by anybody, and is said as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from vigil.errors import VigilError
from vigil.sdk.client import Client
from vigil.subjects import SessionKey
from vigil.words import slash
from vigil.words.slash import SlashOrder

from ..wall import zoned
from . import replies
from .conversation import Conversation
from .deletion import ThreadDeletion
from .files import Files
from .letters import Pointing
from .screen import Screen
from .versions import Versions

SHOWN_MAX: Final = 10
WIDTH: Final = 76
Obey = Callable[[SlashOrder], Awaitable[None]]


class Orders:
    """Obeys what the person orders in one conversation."""

    def __init__(
        self, client: Client, key: SessionKey, screen: Screen, conversation: Conversation
    ) -> None:
        self._client = client
        self._key = key
        self._screen = screen
        self._conversation = conversation
        self._files = Files(client, screen)
        self._deleting = ThreadDeletion(client, key, screen)
        self.is_new_wanted = False
        """Whether they go on in another conversation."""
        self._is_left = False
        versions = Versions(client, str(key), screen)
        self._letters = Pointing(client, str(key), key.agent, screen, conversation.say)
        self.obeys: dict[str, Obey] = {
            "new": self._begin,
            "stop": partial(self._answer, self._stop),
            "why": partial(self._answer, self._why),
            "remind": self._remind,
            "tasks": partial(self._answer, self._tasks),
            "edit": versions.obey,
            "retry": versions.obey,
            "reply": self._reply,
            "attach": self._files.obey,
            "letters": self._letters.obey,
            "open": self._letters.obey,
            "fine": self._letters.obey,
            "trust": self._letters.obey,
            "delete": self._deleting.obey,
            "quit": self._leave,
            "help": self._help,
        }

    @property
    def is_over(self) -> bool:
        """Whether nothing more is said in this conversation."""
        return self._deleting.is_done or self.is_new_wanted or self._is_left

    async def take(self, line: str) -> None:
        """Obey a line, or say it if it is no order."""
        match slash.read(line, is_terminal=True):
            case slash.PlainWords(text):
                await self._conversation.say(text, self._files.given())
            case slash.UnknownSlash(told):
                self._screen.notice(told)
            case SlashOrder() as order:
                await self.obeys[order.command.name](order)

    async def _begin(self, order: SlashOrder) -> None:
        self.is_new_wanted = True

    async def _leave(self, order: SlashOrder) -> None:
        self._is_left = True

    async def _reply(self, order: SlashOrder) -> None:
        # A reply to what the agent said may begin with any word but a letter's name.
        if slash.handle_of(order.rest):
            await self._letters.obey(order)
        else:
            await replies.say(self._conversation, order, self._files, self._screen)

    async def _remind(self, order: SlashOrder) -> None:
        if order.rest:
            await self._conversation.say(slash.reminder_of(order.rest))
        else:
            await self._answer(self._pending, order)

    async def _help(self, order: SlashOrder) -> None:
        for line in slash.usages(is_terminal=True):
            self._screen.notice(line)

    async def _answer(self, ask: Callable[[str], list[str]], order: SlashOrder) -> None:
        """Ask the gateway, and show what it says, a line each."""
        try:
            lines = await asyncio.to_thread(ask, order.rest)
        except VigilError as error:
            lines = [str(error)]
        for line in lines:
            self._screen.notice(line)

    def _stop(self, rest: str) -> list[str]:
        self._client.stop(str(self._key))
        return ["stopped: what it was doing here comes to nothing"]

    def _why(self, rest: str) -> list[str]:
        from ..commands.why import story

        back, id_ = slash.asked_of(rest)
        said = self._conversation.said
        if not id_ and not 0 < back <= len(said):
            return ["the agent said nothing here that long ago"]
        found = self._client.why(id_ or said[-back], session=str(self._key))
        return list(story(found, width=WIDTH))

    def _pending(self, rest: str) -> list[str]:
        found = self._client.timers(str(self._key))["timers"][:SHOWN_MAX]
        lines = [f"{zoned(one['fire_at'])}  {_reason_of(one)}" for one in found]
        return lines or ["nothing is to come here"]

    def _tasks(self, rest: str) -> list[str]:
        found = [one for one in self._client.tasks() if one["agentId"] == self._key.agent]
        lines = [f"{one['status']:<12}  {one['title']}" for one in found[:SHOWN_MAX]]
        return lines or ["there are no tasks"]


def _reason_of(timer: dict[str, Any]) -> str:
    return str(timer.get("message") or timer["reason"])
