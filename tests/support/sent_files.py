"""Files that people sent to a chat network, as its server hands them out, or doesn't."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from aiohttp import web

from tests.support.on_loopback import served

Way = Callable[[web.Request], Awaitable[web.StreamResponse]]
"""Answers who asks for a file."""
PIECE: Final = bytes(64 * 1024)


class SentFiles:
    """By name, how each is handed out."""

    def __init__(self) -> None:
        self.ways: dict[str, Way] = {}
        self.asked: list[tuple[str, str]] = []
        """Name, and what the request says of who asks."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        self.asked.append((name, request.headers.get("Authorization", "")))
        return await self.ways[name](request)


def whole(data: bytes) -> Way:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(body=data, content_type="application/octet-stream")

    return answer


def late(data: bytes) -> Way:
    """In trouble the first time."""
    tries = iter([web.Response(status=502), web.Response(body=data)])

    async def answer(_: web.Request) -> web.StreamResponse:
        return next(tries)

    return answer


async def endless(request: web.Request) -> web.StreamResponse:
    """Without a length, as long as anybody reads it."""
    response = web.StreamResponse()
    await response.prepare(request)
    with contextlib.suppress(ConnectionError):
        for _ in range(1_000):
            await response.write(PIECE)
    return response


async def cut(request: web.Request) -> web.StreamResponse:
    """Lost in its middle."""
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(bytes(500))
    assert request.transport is not None
    request.transport.abort()
    return response


def elsewhere(url: str) -> Way:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": url})

    return answer


async def missing(_: web.Request) -> web.StreamResponse:
    return web.Response(status=404)


@contextlib.asynccontextmanager
async def another_place() -> AsyncIterator[tuple[str, list[str]]]:
    """A server that nothing may be asked of; yields its address, and what is asked of it."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(f"{request.path} {request.headers.get('Authorization')}")
        return web.Response(body=b"caught")

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    async with served(app) as url:
        yield url, asked
