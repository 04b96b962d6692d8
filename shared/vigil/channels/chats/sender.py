"""What senders of networks do alike: a message in parts, each waiting where the server asks it to.

What arrived in part isn't sent again: the part that came would come twice.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from ...contracts import Said
from ...errors import InvalidInput, VigilError
from ..answers import Answer, NotTaken, Taken, Unclear
from ..contract import ChannelContext
from .calls import CALL_S, CallFailed
from .partner import ChatPartner, partner_of


class Closable(Protocol):
    async def close(self) -> None: ...


A = TypeVar("A", bound=Closable)
P = TypeVar("P")


class ChatSender(ABC, Generic[A, P]):
    """One account's way out: by an interface `A`, in parts `P`."""

    def __init__(self, context: ChannelContext, timeout_s: float) -> None:
        self._context = context
        self._timeout_s = timeout_s
        self._opened: tuple[str, A] | None = None
        """The token, and the way that was opened with it."""

    @abstractmethod
    def token(self) -> str:
        """Return the token as it is now. Raises: InvalidInput."""

    @abstractmethod
    def opened_with(self, token: str) -> A:
        """Open the way."""

    @abstractmethod
    async def planned(self, api: A, said: Said, partner: ChatPartner) -> Sequence[P]:
        """Return what is to be sent, in order. Raises: CallFailed."""

    @abstractmethod
    async def hand_over(self, api: A, part: P) -> str:
        """Send one part, once -> its mark, by which a reply to it is known; empty: by something
        else. Raises: CallFailed."""

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened[1].close()
            self._opened = None

    async def _open(self) -> A:
        token = self.token()
        if self._opened is None or self._opened[0] != token:
            await self.close()
            self._opened = token, self.opened_with(token)
        return self._opened[1]

    async def send(self, said: Said, seq: int) -> Answer:
        """Try once; never raises but when cancelled."""
        try:
            partner = await partner_of(self._context, said)
            api = await self._open()
        except InvalidInput as error:
            return NotTaken(reason=str(error))
        except VigilError as error:
            return NotTaken(reason=f"whom it is for can't be looked up: {error}")
        if partner is None:
            reason = f"no chat is known; see `vigil channels pair {self._context.name}`"
            return NotTaken(reason=reason, is_final=True)
        within_s = self._timeout_s
        try:
            async with asyncio.timeout(within_s):
                return await self._sent(api, said, partner)
        except TimeoutError:
            return Unclear(reason=f"not all of it within {within_s:g} s")

    async def _sent(self, api: A, said: Said, partner: ChatPartner) -> Answer:
        until = asyncio.get_running_loop().time() + self._timeout_s
        try:
            parts = await self.planned(api, said, partner)
        except CallFailed as failed:
            # Nothing was said yet.
            return failed.answer if isinstance(failed.answer, NotTaken) else _not_yet(failed)
        sent: tuple[str, ...] = ()
        for number, part in enumerate(parts, 1):
            answer = await self._handed_over(api, part, until)
            if isinstance(answer, Taken):
                sent += answer.sent
                continue
            if number > 1:
                of = f"{number - 1} of {len(parts)} parts arrived"
                return Unclear(reason=f"{of}; then: {answer.reason}", sent=sent)
            return answer
        return Taken(reason="" if len(parts) == 1 else f"{len(parts)} messages", sent=sent)

    async def _handed_over(self, api: A, part: P, until: float) -> Answer:
        """Send one part; what is to wait waits, if there is time for it."""
        while True:
            try:
                mark = await self.hand_over(api, part)
            except CallFailed as failed:
                left_s = until - asyncio.get_running_loop().time()
                if 0 < failed.wait_s < left_s - CALL_S:
                    await asyncio.sleep(failed.wait_s)
                    continue
                return failed.answer
            return Taken(sent=(mark,) if mark else ())


def _not_yet(failed: CallFailed) -> NotTaken:
    return NotTaken(reason=f"where to say it couldn't be asked: {failed.answer.reason}")
