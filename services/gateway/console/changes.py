"""The stream that tells open pages that something changed, so that they ask for what they show."""

from __future__ import annotations

from typing import Any

from fastapi import Response

from .decide import HEADERS, change_of
from .inner_api import InnerApi


class ChangeStream(Response):
    """The reader's signals, without what is in them: a page shows that by its own request."""

    def __init__(self, api: InnerApi, last_id: str | None) -> None:
        super().__init__()
        self._api = api
        self._last_id = last_id

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def told(message: Any) -> None:
            if message["type"] == "http.response.start":
                more = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                await send({**message, "headers": [*message["headers"], *more]})
            else:
                await send({**message, "body": change_of(message.get("body", b""))})

        await self._api.follow("/api/signals", self._last_id, receive, told)
