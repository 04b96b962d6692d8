"""`/letters`, `/open A12 TEXT`, `/fine A12` and `/trust A12` in a chat: what the agent sees closed,
since others had a part in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from vigil.errors import VigilError
from vigil.sdk.client import Client
from vigil.texts.glyphs import visible
from vigil.words.amounts import count_of
from vigil.words.slash import SlashOrder, handle_of

from .. import wall
from .screen import Screen

LIST: Final = "letters"
YES: Final = "yes"
NO: Final = "no"
SHOWN_MAX: Final = 10


class Pointing:
    """Shows letters, and points at them."""

    def __init__(
        self,
        client: Client,
        key: str,
        agent: str,
        screen: Screen,
        say: Callable[[str], Awaitable[None]],
    ) -> None:
        """`say`: says something in the conversation."""
        self._client = client
        self._key = key
        self._agent = agent
        self._screen = screen
        self._say = say
        self._read: dict[str, str] = {}
        """Letters that were shown whole, and the digest of what was shown."""

    async def obey(self, order: SlashOrder) -> None:
        """Do what an order says; one of `/reply` that names a letter opens it, too."""
        handle = handle_of(order.rest)
        name = order.command.name
        if (name == LIST) == bool(handle):
            self._screen.notice(order.command.usage)
            return
        try:
            await self._do(name, handle, order.rest[len(handle) :].strip())
        except VigilError as error:
            self._screen.notice(str(error))

    async def _do(self, command: str, handle: str, text: str) -> None:
        found = await asyncio.to_thread(self._client.letters, self._key)
        if command == LIST:
            lines = [line_of(one) for one in found[:SHOWN_MAX]]
            for line in lines or ["there are no letters"]:
                self._screen.notice(line)
            return
        letter = next((one for one in found if one["handle"] == handle), None)
        if letter is None:
            self._screen.notice(f"there is no letter {handle}; /{LIST} shows them")
        elif command == "fine":
            await self._vouch(handle, text)
        elif command != "trust":
            await self._say(f"open {handle}: {text}" if text else f"open {handle}")
        elif letter["source"]:
            made = await asyncio.to_thread(self._client.trust, letter["source"], agent=self._agent)
            self._screen.notice(f"{made['meaning']} `vigil trust remove {made['source']}` ends it.")
        else:
            self._screen.notice(f"{handle} is from nothing that has a name")

    async def _vouch(self, handle: str, answer: str) -> None:
        """Show a letter whole, and have it count as the person's once they say yes to that."""
        if answer == NO:
            await asyncio.to_thread(self._client.stop_vouching, self._key, handle)
            self._screen.notice(f"{handle} is closed again")
        elif answer == YES and handle in self._read:
            digest = self._read[handle]
            await asyncio.to_thread(self._client.vouch, self._key, handle, digest=digest)
            self._screen.notice(f"the text of {handle} counts as yours from now on, word for word")
        else:
            shown = await asyncio.to_thread(self._client.letter, self._key, handle)
            self._read[handle] = shown["digest"]
            self._screen.notice("\n".join(map(visible, shown["text"].split("\n"))))
            self._screen.notice(
                f"`/fine {handle} {YES}`: that counts as yours from now on, word for word; "
                f"`/fine {handle} {NO}` ends it"
            )


def line_of(letter: Mapping[str, Any]) -> str:
    """Return a letter as a line.

    >>> line_of({"handle": "a12", "what": "a result", "source": "mcp:mail", "size": 40,
    ...          "at": "2026-05-01T08:00:00Z", "is_trusted": False, "is_vouched": False})
    'a12  2026-05-01 08:00:00 UTC  a result, from mcp:mail, 40 characters'
    """
    source = f", from {letter['source']}" if letter["source"] else ""
    marks = {"is_vouched": "fine", "is_trusted": "trusted by now"}
    trusted = "".join(f", {words}" for name, words in marks.items() if letter[name])
    at = wall.zoned(letter["at"])
    size = f", {count_of(letter['size'], 'character')}" if letter["size"] else ""
    return f"{letter['handle']}  {at}  {letter['what']}{source}{size}{trusted}"
