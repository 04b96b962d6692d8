"""Streams that open pages follow: that something changed, and an answer in the making."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from fastapi import Response

from vigil.background.end import end_tasks

from ..http.browser import HEADERS, change_of
from .visit import Visit

_GONE: Final = {"type": "http.disconnect"}


class InnerStream(Response):
    """A stream of the API, as whoever is signed in reads it, for as long as they are."""

    def __init__(self, visit: Visit, path: str, last_id: str | None = None) -> None:
        super().__init__()
        self._visit = visit
        self._path = path
        self._last_id = last_id

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        is_open = False
        visit = self._visit

        async def pass_on(message: Any) -> None:
            nonlocal is_open
            if end.is_set() and message.get("more_body"):
                return  # what was on its way is for whoever is signed in
            if message["type"] == "http.response.start":
                more = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                await send({**message, "headers": [*message["headers"], *more]})
                is_open = True
            else:
                is_open = message.get("more_body", False)
                await send({**message, "body": self._shown(message.get("body", b""))})

        async with visit.edge.browsers.end_of(visit.browser, visit.now) as end:
            reading = _Reading(receive, end)
            await visit.api.follow(self._path, self._last_id, reading, pass_on)
        if is_open:  # they were signed out
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _shown(self, chunk: bytes) -> bytes:
        return chunk


class _Reading:
    """What a browser sends: that it went, also once it's signed out."""

    def __init__(self, receive: Any, end: asyncio.Event) -> None:
        self._receive = receive
        self._end = end

    async def __call__(self) -> Any:
        parts = (asyncio.ensure_future(self._receive()), asyncio.ensure_future(self._end.wait()))
        try:
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            return parts[0].result() if parts[0].done() else _GONE
        finally:
            await end_tasks(*parts)


class ChangeStream(InnerStream):
    """The reader's signals, without what is in them: a page shows that by its own request."""

    def __init__(self, visit: Visit, last_id: str | None) -> None:
        super().__init__(visit, "/api/signals", last_id)

    def _shown(self, chunk: bytes) -> bytes:
        return change_of(chunk)
