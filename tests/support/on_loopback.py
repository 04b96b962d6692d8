"""Servers of aiohttp on loopback, and the answers that all of them may give badly."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Protocol

from aiohttp import web

from tests.support.pauses import pauses


class Storing(Protocol):
    """A network that keeps what a bot says."""

    def store(self, given: dict[str, Any]) -> Any: ...


@contextlib.asynccontextmanager
async def served(app: web.Application, port: int = 0) -> AsyncIterator[str]:
    """Serve it; yields its address."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def half(network: Storing, request: web.Request, given: dict[str, Any]) -> Any:
    """An answer that ends in its middle."""

    async def answer() -> web.Response:
        network.store(given)
        return web.Response(text='{"ok": true, "resu', content_type="application/json")

    return answer()


def slow(network: Storing, request: web.Request, given: dict[str, Any]) -> Any:
    """It has the message, and says nothing until nobody waits any more."""

    async def answer() -> web.Response:
        network.store(given)
        pause_s = pauses()
        while request.transport is not None and not request.transport.is_closing():
            await asyncio.sleep(next(pause_s))
        return web.Response()

    return answer()
