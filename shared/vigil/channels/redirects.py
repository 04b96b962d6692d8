"""Answers that lead elsewhere, which libraries of networks would follow with what was to be said.

What is private goes where the configuration says, and to nowhere that an answer names (S9).
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Final

from aiohttp import ClientError, ClientSession, TraceConfig, TraceRequestRedirectParams


class LedElsewhere(ClientError):
    """The server names another place, and has taken nothing."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{status}: it leads elsewhere, which isn't followed")


async def _refuse(
    _session: ClientSession, _context: SimpleNamespace, redirect: TraceRequestRedirectParams
) -> None:
    redirect.response.close()
    raise LedElsewhere(redirect.response.status)


NO_REDIRECTS: Final = TraceConfig()
"""Of a session that follows none. Requests raise LedElsewhere."""
NO_REDIRECTS.on_request_redirect.append(_refuse)
NO_REDIRECTS.freeze()
