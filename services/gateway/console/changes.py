"""Streams that open pages follow: that something changed, and an answer in the making."""

from __future__ import annotations

from typing import Any

from fastapi import Response

from .decide import HEADERS, change_of
from .inner_api import InnerApi


class InnerStream(Response):
    """A stream of the API, as whoever is signed in reads it."""

    def __init__(self, api: InnerApi, path: str, last_id: str | None = None) -> None:
        super().__init__()
        self._api = api
        self._path = path
        self._last_id = last_id

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def told(message: Any) -> None:
            if message["type"] == "http.response.start":
                more = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                await send({**message, "headers": [*message["headers"], *more]})
            else:
                await send({**message, "body": self._shown(message.get("body", b""))})

        await self._api.follow(self._path, self._last_id, receive, told)

    def _shown(self, chunk: bytes) -> bytes:
        return chunk


class ChangeStream(InnerStream):
    """The reader's signals, without what is in them: a page shows that by its own request."""

    def __init__(self, api: InnerApi, last_id: str | None) -> None:
        super().__init__(api, "/api/signals", last_id)

    def _shown(self, chunk: bytes) -> bytes:
        return change_of(chunk)
