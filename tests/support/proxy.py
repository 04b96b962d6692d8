"""A reverse proxy that has a gateway be below a path, as people put one in front of it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Final

import aiohttp
from aiohttp import web

ROOT: Final = "/vigil"
_OF_ONE_HOP: Final = frozenset({"connection", "content-length", "keep-alive", "transfer-encoding"})


class Proxy:
    """One that listens. What isn't below `ROOT` is somebody else's: 404."""

    def __init__(self, client: aiohttp.ClientSession, *, leaves_out: bool) -> None:
        self.port = 0
        self.gateway = 0
        """The gateway's port; set once it runs."""
        self.strays: list[str] = []
        """Paths that were asked for outside of `ROOT`."""
        self._client = client
        self._leaves_out = leaves_out

    @property
    def url(self) -> str:
        """Where people reach the gateway."""
        return f"http://127.0.0.1:{self.port}{ROOT}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        path = request.raw_path
        if not (path == ROOT or path.startswith(f"{ROOT}/")):
            self.strays.append(path)
            raise web.HTTPNotFound
        if self._leaves_out:
            path = path.removeprefix(ROOT) or "/"
        async with self._client.request(
            request.method,
            f"http://127.0.0.1:{self.gateway}{path}",
            headers=[one for one in request.headers.items() if one[0].lower() not in _OF_ONE_HOP],
            data=await request.read() or None,
            allow_redirects=False,
        ) as told:
            heads = [one for one in told.headers.items() if one[0].lower() not in _OF_ONE_HOP]
            answer = web.StreamResponse(status=told.status, headers=heads)
            await answer.prepare(request)
            async for chunk in told.content.iter_any():
                await answer.write(chunk)
            await answer.write_eof()
            return answer


@contextlib.asynccontextmanager
async def running_proxy(*, leaves_out: bool = True) -> AsyncIterator[Proxy]:
    """A proxy; it leaves its path out of what it asks for, or doesn't."""
    forever = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=forever, auto_decompress=False) as client:
        proxy = Proxy(client, leaves_out=leaves_out)
        server = web.Server(proxy.answer)
        runner = web.ServerRunner(server, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        proxy.port = runner.addresses[0][1]
        try:
            yield proxy
        finally:
            await runner.cleanup()
