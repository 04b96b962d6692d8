"""`/letters`, `/open A12 TEXT`, `/fine A12` and `/trust A12` in a chat: what the agent sees closed,
since others had a part in it.

Only at a terminal: what comes from a pipe is said as it is.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from vigil.errors import VigilError
from vigil.sdk.client import Client
from vigil.texts.glyphs import visible

from .. import tables
from .screen import Screen

LIST: Final = "/letters"
OPEN: Final = "/open"
REPLY: Final = "/reply"
TRUST: Final = "/trust"
FINE: Final = "/fine"
YES: Final = "yes"
NO: Final = "no"
SHOWN_MAX: Final = 10
_HANDLE: Final = re.compile(r"[a-z]\d{1,9}")
USAGE: Final = (
    f"{LIST}: what came from outside, by name; {OPEN} a12 TEXT: open it for the answer to TEXT; "
    f"{FINE} a12: read it, and have its text count as yours, word for word; {TRUST} a12: "
    "trust where it came from, from now on"
)


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

    async def take(self, line: str) -> bool:
        """Do what a line says, if it is one of the commands; return whether it is."""
        command, _, rest = line.strip().partition(" ")
        handle, _, text = rest.strip().partition(" ")
        # A reply to what the agent said may begin with any word but a letter's name.
        if command not in (LIST, OPEN, FINE, TRUST) and not (
            command == REPLY and _HANDLE.fullmatch(handle.lower())
        ):
            return False
        if (command == LIST) == bool(handle):
            self._screen.notice(USAGE)
            return True
        try:
            await self._do(command, handle.lower(), text.strip())
        except VigilError as error:
            self._screen.notice(str(error))
        return True

    async def _do(self, command: str, handle: str, text: str) -> None:
        found = await asyncio.to_thread(self._client.letters, self._key)
        if command == LIST:
            lines = [line_of(one) for one in found[:SHOWN_MAX]]
            for line in lines or ["there are no letters"]:
                self._screen.notice(line)
            return
        letter = next((one for one in found if one["handle"] == handle), None)
        if letter is None:
            self._screen.notice(f"there is no letter {handle}; {LIST} shows them")
        elif command == FINE:
            await self._vouch(handle, text)
        elif command != TRUST:
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
                f"`{FINE} {handle} {YES}`: that counts as yours from now on, word for word; "
                f"`{FINE} {handle} {NO}` ends it"
            )


def line_of(letter: Mapping[str, Any]) -> str:
    """Return a letter as a line.

    >>> line_of({"handle": "a12", "what": "a result", "source": "mcp:mail", "size": 40,
    ...          "at": "2026-05-01T08:00:00Z", "is_trusted": False, "is_vouched": False})
    'a12  2026-05-01 08:00:00  a result, from mcp:mail, 40 characters'
    """
    source = f", from {letter['source']}" if letter["source"] else ""
    marks = {"is_vouched": "fine", "is_trusted": "trusted by now"}
    trusted = "".join(f", {words}" for name, words in marks.items() if letter[name])
    at = tables.instant(letter["at"])
    size = f", {letter['size']} characters" if letter["size"] else ""
    return f"{letter['handle']}  {at}  {letter['what']}{source}{size}{trusted}"
