"""`/edit TEXT` and `/retry` in a chat: the newest message said otherwise, or answered anew.

Only at a terminal: what comes from a pipe is said as it is.
"""

from __future__ import annotations

import asyncio
from typing import Final
from uuid import uuid4

from vigil.errors import VigilError
from vigil.sdk.client import Client

from .screen import Screen

EDIT: Final = "/edit"
RETRY: Final = "/retry"
DONE: Final = {EDIT: "replaced by this", RETRY: "answered anew"}
USAGE: Final = f"{EDIT} TEXT: what you said last, said otherwise; {RETRY}: answered anew"


class Versions:
    """Takes back what the person said last."""

    def __init__(self, client: Client, key: str, screen: Screen) -> None:
        self._client = client
        self._key = key
        self._screen = screen

    async def take(self, line: str) -> bool:
        """Do what a line says, if it is one of the commands; return whether it is."""
        command, _, text = line.strip().partition(" ")
        if command not in (EDIT, RETRY):
            return False
        if (command == EDIT) != bool(text.strip()):
            self._screen.notice(USAGE)
            return True
        try:
            await asyncio.to_thread(self._replace, text.strip() or None)
        except VigilError as error:
            self._screen.notice(f"not taken back: {error}")
        else:
            self._screen.notice("what you said last is " + DONE[command])
        return True

    def _replace(self, text: str | None) -> None:
        said = [one for one in self._client.session(self._key)["messages"] if one["role"] == "user"]
        message = said[-1]["seq"] if said else None
        self._client.replace(self._key, message=message, text=text, idempotency_key=str(uuid4()))
