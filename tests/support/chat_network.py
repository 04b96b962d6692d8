"""What fakes of chat networks have in common: who is waited for, and how an answer may fail."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from typing import Any

from aiohttp import web

from tests.support.on_loopback import served
from tests.support.pauses import pauses
from tests.support.sent_files import SentFiles
from tests.support.talk import PATIENCE_S


class Refused(Exception):
    """What the published interface doesn't take."""


class Said:
    """What the bot said in a room."""

    def __init__(self, place: str, room: str, text: str, given: dict[str, Any]) -> None:
        self.place = place
        """By which the network knows it."""
        self.room = room
        self.text = text
        self.given = given


Behaviour = Callable[["ChatNetwork", web.Request, dict[str, Any]], Any]
"""Answers one call that says something otherwise; returns None: as usual."""


class ChatNetwork(ABC):
    """A network on loopback, with one bot."""

    def __init__(self) -> None:
        self.url = ""
        self.said: list[Said] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.refused: list[str] = []
        """Of calls that a published schema doesn't know."""
        self.behaviours: list[Behaviour] = []
        self.is_revoked = False
        self.sockets: list[web.WebSocketResponse] = []
        self.files = SentFiles()
        """That people sent, below /sent/."""

    secret: str
    """The token, which nothing may tell."""

    @abstractmethod
    def section(self) -> dict[str, Any]:
        """Return the section of a channel to it."""

    @abstractmethod
    async def write(self, who: str, text: str, *, channel: str = "", **more: Any) -> str:
        """Somebody writes: to the bot alone, or in a channel; returns the message's id."""

    @abstractmethod
    def routes(self) -> list[web.RouteDef]: ...

    @abstractmethod
    def store(self, given: dict[str, Any]) -> dict[str, Any]:
        """Say something in a room; returns the answer. Raises: Refused."""

    @abstractmethod
    def taken(self, result: dict[str, Any]) -> web.Response: ...

    @abstractmethod
    def too_many(self, wait_s: float) -> web.Response: ...

    @contextlib.asynccontextmanager
    async def running(self, port: int = 0) -> AsyncIterator[None]:
        app = web.Application()
        app.router.add_routes([*self.routes(), web.get("/sent/{name}", self.files.answer)])
        async with served(app, port) as self.url:
            try:
                yield
            finally:
                for one in self.sockets:
                    await one.close()

    async def says(self, request: web.Request, given: dict[str, Any]) -> web.StreamResponse:
        """Answer a call that says something."""
        if self.behaviours and (special := self.behaviours.pop(0)(self, request, given)):
            answer: web.StreamResponse = await special
            return answer
        return self.taken(self.store(given))

    async def send(self, told: dict[str, Any]) -> None:
        """Tell the newest socket, if anybody is there."""
        for socket in self.sockets[-1:]:
            with contextlib.suppress(ConnectionError):
                await socket.send_json(told)

    async def until(self, count: int) -> list[Said]:
        """Wait until the bot said so much; returns all."""
        async with asyncio.timeout(PATIENCE_S):
            pause_s = pauses()
            while len(self.said) < count:
                await asyncio.sleep(next(pause_s))
        return self.said

    async def until_called(self, name: str, count: int = 1) -> dict[str, Any]:
        """Wait until a call was made so often; returns what was given with the last."""
        async with asyncio.timeout(PATIENCE_S):
            pause_s = pauses()
            while len(found := [given for one, given in self.calls if one == name]) < count:
                await asyncio.sleep(next(pause_s))
        return found[-1]


# ---------------------------------------------------------------- what may go wrong


def as_usual(*_: Any) -> None:
    """Nothing goes wrong."""


def too_many(wait_s: float) -> Behaviour:
    """A limit: try again after so many seconds."""

    async def answer(network: ChatNetwork) -> web.Response:
        return network.too_many(wait_s)

    return lambda network, *_: answer(network)


def in_trouble(*, is_stored: bool) -> Behaviour:
    """A server that fails, before or after it has the message."""

    async def answer(network: ChatNetwork, given: dict[str, Any]) -> web.Response:
        if is_stored:
            network.store(given)
        return web.Response(status=502, text="<html>Bad Gateway</html>")

    return lambda network, _, given: answer(network, given)


def cut(*, is_stored: bool) -> Behaviour:
    """The line is lost, before or after the server has the message."""

    async def answer(
        network: ChatNetwork, request: web.Request, given: dict[str, Any]
    ) -> web.Response:
        if is_stored:
            network.store(given)
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return answer
