"""How an account is followed: from one failure to the next, later and later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, NoReturn, Protocol, TypeVar

from ...errors import InvalidInput
from ..answers import pause_s
from ..contract import ChannelContext, Ear
from .calls import CallFailed
from .posts import AGAIN, REFUSED_S, ChatReading
from .section import ChatBot

S = TypeVar("S", bound=ChatBot)


class FollowedAccount(Protocol):
    """What is done from one failure to the next."""

    was_heard: bool
    """Whether the server told anything: then the next failure is the first."""

    async def run(self) -> NoReturn:
        """Follow the account. Raises: CallFailed, InvalidInput, Unavailable, BusError."""
        ...

    async def close(self) -> None: ...


class ChatListener(Generic[S]):
    """One account's way in."""

    def __init__(
        self,
        section: S,
        context: ChannelContext,
        opened: Callable[[S, ChannelContext, ChatReading], FollowedAccount],
    ) -> None:
        """
        Args:
            opened: makes what reads it, with the token as it is now. Raises: InvalidInput.
        """
        self._section = section
        self._context = context
        self._opened = opened

    async def listen(self, ear: Ear) -> None:
        """Read until cancelled; after a failure again, later and later."""
        section, context = self._section, self._context
        reading = await ChatReading.opened(
            context, ear, account=section.bot.lower(), agent=section.agent
        )
        await follow(reading, lambda: self._opened(section, context, reading))


async def follow(reading: ChatReading, opened: Callable[[], FollowedAccount]) -> NoReturn:
    """Follow an account until cancelled.

    Args:
        opened: makes what reads it, with the token as it is now. Raises: InvalidInput.

    Raises:
        Unavailable, BusError: the broker is away.
    """
    failures = 0
    while True:
        account: FollowedAccount | None = None
        try:
            account = opened()
            await account.run()
        except InvalidInput as error:
            wait_s = REFUSED_S
            reading.show("refused", str(error))
        except CallFailed as error:
            failures = 1 if account is not None and account.was_heard else failures + 1
            wait_s = pause_s(AGAIN.after(failures), error.wait_s)
            if error.is_token_refused:
                wait_s = REFUSED_S
            reading.lost("refused" if error.is_token_refused else "away", error, wait_s)
        finally:
            if account is not None:
                await account.close()
        await asyncio.sleep(wait_s)
