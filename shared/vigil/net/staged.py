"""The web of a story: the pages that it names, and nothing else.

Where a story is played (`vigil.evals`), what fetches pages is handed these instead of the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final

import httpx2

PAGES: Final[ContextVar[Mapping[str, str] | None]] = ContextVar("PAGES", default=None)
"""Texts by their addresses; None: there is no story."""


class StagedWeb(httpx2.AsyncBaseTransport):
    """Answers from the pages of a story; whatever else is asked for isn't there."""

    def __init__(self, pages: Mapping[str, str]) -> None:
        self._pages = pages

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        text = self._pages.get(str(request.url))
        headers = {"content-type": "text/plain; charset=utf-8"}
        status, said = (404, "There is no such page.") if text is None else (200, text)
        return httpx2.Response(status, headers=headers, stream=httpx2.ByteStream(said.encode()))
