"""`/edit TEXT` and `/retry` in a chat: the newest message said otherwise, or answered anew."""

from __future__ import annotations

import asyncio
from typing import Final
from uuid import uuid4

from vigil.errors import VigilError
from vigil.sdk.client import Client
from vigil.words.slash import SlashOrder

from .screen import Screen

EDIT: Final = "edit"
DONE: Final = {EDIT: "replaced by this", "retry": "answered anew"}


class Versions:
    """Takes back what the person said last."""

    def __init__(self, client: Client, key: str, screen: Screen) -> None:
        self._client = client
        self._key = key
        self._screen = screen

    async def obey(self, order: SlashOrder) -> None:
        """Do what an order says."""
        name = order.command.name
        if (name == EDIT) != bool(order.rest):
            self._screen.notice(order.command.usage)
            return
        try:
            await asyncio.to_thread(self._replace, order.rest or None)
        except VigilError as error:
            self._screen.notice(f"not taken back: {error}")
        else:
            self._screen.notice("what you said last is " + DONE[name])

    def _replace(self, text: str | None) -> None:
        said = [one for one in self._client.session(self._key)["messages"] if one["role"] == "user"]
        message = said[-1]["seq"] if said else None
        self._client.replace(self._key, message=message, text=text, idempotency_key=str(uuid4()))
