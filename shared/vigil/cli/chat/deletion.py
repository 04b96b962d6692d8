"""`/delete` in a chat: the conversation is deleted, and the chat ends."""

from __future__ import annotations

import asyncio
from typing import Final

from vigil.errors import VigilError
from vigil.sdk.client import Client
from vigil.subjects import SessionKey

from .delete import told
from .screen import Screen

DELETE: Final = "/delete"
USAGE: Final = f"{DELETE} yes: delete this conversation, for good; what was learnt in it is kept"


class ThreadDeletion:
    """Deletes it once that is confirmed.

    Only at a terminal: what comes from a pipe is said as it is.
    """

    def __init__(self, client: Client, key: SessionKey, screen: Screen) -> None:
        self._client = client
        self._key = key
        self._screen = screen
        self.is_done = False

    async def take(self, line: str) -> bool:
        """Do what a line says, if it is the command; return whether it is."""
        command, _, word = line.strip().partition(" ")
        if command != DELETE or "\n" in line.strip():
            return False
        if word.strip() != "yes":
            self._screen.notice(USAGE)
            return True
        try:
            done = await asyncio.to_thread(self._client.delete_session, str(self._key))
        except VigilError as error:
            self._screen.notice(f"not deleted: {error}")
        else:
            self._screen.notice(told(self._key, done))
            self.is_done = True
        return True
