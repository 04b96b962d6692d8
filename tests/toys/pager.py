"""A toy channel, all of it: pages over a line of TCP, and what is typed on the pager comes back.

A page is a line of JSON, answered by a line: ``ok``, or ``busy SECONDS``. What somebody types comes
as JSON, with the station's key in a header.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Mapping
from typing import Any

import msgspec

from vigil.channels.answers import Answer, NotTaken, Taken, Unclear
from vigil.channels.contract import (
    Channel,
    ChannelContext,
    ChannelRequest,
    Inbound,
    NotAuthentic,
    Receiver,
    Sender,
)
from vigil.contracts import Said
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey


class Pager(Channel, frozen=True, kw_only=True, tag="pager"):
    port: int
    key: str
    numbers: Mapping[str, str]
    """Whose pager has which number."""
    thread: str = "main"

    def sender(self, context: ChannelContext) -> Sender:
        return PagerSender(self)

    def receiver(self, context: ChannelContext) -> Receiver:
        if not self.key:
            raise InvalidInput("key", "is missing: what the station sends along")
        return PagerReceiver(self)


class PagerSender:
    def __init__(self, pager: Pager) -> None:
        self._pager = pager

    async def send(self, said: Said, seq: int) -> Answer:
        number = self._pager.numbers.get(SessionKey.parse(said.session_key).user)
        if number is None:
            return NotTaken(reason="nobody has given a number", is_final=True)
        try:
            async with asyncio.timeout(self._pager.timeout_s):
                reader, writer = await asyncio.open_connection("127.0.0.1", self._pager.port)
        except (OSError, TimeoutError) as error:
            return NotTaken(reason=f"the station can't be reached: {error}")
        page = {"id": said.id, "to": number, "text": said.text, "seq": seq}
        try:
            async with asyncio.timeout(self._pager.timeout_s):
                writer.write(msgspec.json.encode(page) + b"\n")
                return _answer_of((await reader.readline()).decode().split())
        except (OSError, TimeoutError) as error:
            return Unclear(reason=f"the station went away: {error}")
        finally:
            writer.close()

    async def close(self) -> None:
        pass


def _answer_of(words: list[str]) -> Answer:
    match words:
        case ["ok"]:
            return Taken(reason="the station has it")
        case ["busy", seconds]:
            return NotTaken(reason="the station is busy", wait_s=float(seconds))
    return Unclear(reason="the station said nothing")


class PagerReceiver:
    def __init__(self, pager: Pager) -> None:
        self._pager = pager
        self._users = {number: user for user, number in pager.numbers.items()}

    async def receive(self, request: ChannelRequest) -> Inbound | None:
        if not hmac.compare_digest(request.headers.get("x-station-key", ""), self._pager.key):
            raise NotAuthentic("another key")
        typed: dict[str, Any] = msgspec.json.decode(request.body)
        if typed["what"] == "battery":
            return None
        user = self._users.get(typed["from"])
        if user is None:
            raise InvalidInput("from", "is nobody's number")
        return Inbound(
            id=typed["id"],
            user=user,
            thread=self._pager.thread,
            text=typed["text"],
            is_event=typed["what"] == "alarm",
            kind=typed["what"],
        )
