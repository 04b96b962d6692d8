"""When a browser is notified no more, beside what its person and its push service say: as its
person is signed out there, and with the token that let them in."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final, NoReturn

import structlog

from vigil.channels.push import subscriptions
from vigil.errors import VigilError

from ..state.edge import Edge

log = structlog.get_logger("vigil.gateway")

SWEEP_S: Final = 3600.0
"""Tokens also end by themselves."""
AGAIN_S: Final = 5.0


async def sign_out(edge: Edge, browser: str) -> None:
    """Sign a browser out, at once and everywhere, and have it notified no more; may be repeated.

    Raises:
        Unavailable, BusError: nobody knows whether it is.
    """
    # First, so that it can be asked for again; and once more: a page may have subscribed meanwhile.
    await _forget(edge, browser)
    await edge.browsers.end(browser)
    await _forget(edge, browser)


async def _forget(edge: Edge, browser: str) -> None:
    await subscriptions.remove_where(edge.bus, lambda one: one.browser_id == browser)


class EndedTokens:
    """Removes the browsers whose token let somebody in that may no longer."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge
        self._changed = asyncio.Event()
        edge.tokens.on_end(lambda _: self._changed.set())

    async def run(self) -> NoReturn:
        """Look until cancelled: at the start, as a token ends, and now and then."""
        while True:
            self._changed.clear()
            wait_s = SWEEP_S
            try:
                await self.sweep()
            except VigilError as error:
                log.info("push again", action="gateway.push_again", error=str(error))
                wait_s = AGAIN_S
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()

    async def sweep(self) -> None:
        """Remove them. Raises: Unavailable, BusError."""
        tokens, now = self._edge.tokens, self._edge.clock.now()

        def is_gone(one: subscriptions.Subscription) -> bool:
            found = tokens.find_id(one.token_id, now)
            return found is None or found.user != one.user

        count = await subscriptions.remove_where(self._edge.bus, is_gone)
        if count:
            log.info("browsers removed", action="gateway.push_ended", count=count)
