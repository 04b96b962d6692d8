"""Ctrl-C in a chat: it stops an answer; where there is none, or again, it leaves."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from typing import Any, Final

from vigil.errors import VigilError
from vigil.sdk.client import Client

from .conversation import Conversation
from .screen import SharedScreen

STOPPED_S: Final = 1.0
"""How long somebody who leaves waits for the answer to be stopped before."""


class Interrupted(Exception):
    """The person left by Ctrl-C."""


class Interrupts:
    """Takes the presses of one conversation."""

    def __init__(
        self, client: Client, key: str, conversation: Conversation, screen: SharedScreen
    ) -> None:
        self._client = client
        self._key = key
        self._conversation = conversation
        self._screen = screen
        self._stopping: asyncio.Task[None] | None = None
        self._talking: asyncio.Future[Any] | None = None
        self._has_left = False
        self.is_ending = False
        """Whether the person says nothing more: then a press leaves at once."""

    async def until_done(self, talk: Coroutine[Any, Any, Any]) -> Any:
        """Talk, with Ctrl-C as it is here. Raises: Interrupted."""
        loop = asyncio.get_running_loop()
        talking = self._talking = asyncio.ensure_future(talk)
        with contextlib.suppress(NotImplementedError):  # a system without: as it always was
            loop.add_signal_handler(signal.SIGINT, self.press)
        try:
            return await talking
        except asyncio.CancelledError:
            if self._has_left:
                raise Interrupted from None
            raise
        finally:
            if not self._has_left:  # else a further press would break off what ends by itself
                with contextlib.suppress(NotImplementedError):  # nothing was added there
                    loop.remove_signal_handler(signal.SIGINT)
            if self._stopping is not None:
                await asyncio.wait({self._stopping}, timeout=STOPPED_S)

    def press(self) -> None:
        """Stop the answer that is due; if there is none, leave."""
        if self._conversation.is_answer_due and not self.is_ending:
            self._conversation.give_up()  # so that the next press leaves
            self._stopping = asyncio.ensure_future(self._stop())
        elif self._talking is not None:
            self._has_left = True
            self._talking.cancel()

    async def _stop(self) -> None:
        self._screen.give_up()
        try:
            await asyncio.to_thread(self._client.stop, self._key)
        except VigilError as error:
            self._screen.notice(f"not stopped: {error}")
        else:
            self._screen.notice("stopped; Ctrl-C again leaves")
