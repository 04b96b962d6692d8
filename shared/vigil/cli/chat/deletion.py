"""`/delete` in a chat: the conversation is deleted, and the chat ends."""

from __future__ import annotations

import asyncio

from vigil.errors import VigilError
from vigil.sdk.client import Client
from vigil.subjects import SessionKey
from vigil.words.slash import SlashOrder

from .delete import described
from .screen import Screen


class ThreadDeletion:
    """Deletes it once that is confirmed."""

    def __init__(self, client: Client, key: SessionKey, screen: Screen) -> None:
        self._client = client
        self._key = key
        self._screen = screen
        self.is_done = False

    async def obey(self, order: SlashOrder) -> None:
        """Delete it, if the order says yes."""
        if order.rest != "yes":
            self._screen.notice(order.command.usage)
            return
        try:
            done = await asyncio.to_thread(self._client.delete_session, str(self._key))
        except VigilError as error:
            self._screen.notice(f"not deleted: {error}")
        else:
            self._screen.notice(described(self._key, done))
            self.is_done = True
