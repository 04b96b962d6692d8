"""Doing what may be repeated until the broker answers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog

from vigil.errors import Unavailable

from .http.problem import unavailable

T = TypeVar("T")
log = structlog.get_logger("vigil.gateway")

TRY_TIMEOUT_S: Final = 1.2
"""After which one try counts as failed."""
PATIENCE_S: Final = 4.0
"""How long a publish is repeated after its first try failed."""
RETRY_DELAY_S: Final = 0.1


async def patiently(
    work: Callable[[], Awaitable[T]], check: Callable[[], None] = lambda: None
) -> T:
    """Do `work`, which may be repeated, until the broker answers or patience ends.

    Args:
        check: called after the first failure; raises if waiting is of no use.

    Raises:
        Problem: 503; whether it happened is unknown.
    """
    try:
        return await work()
    except Unavailable as error:
        check()
        log.warning("trying again", action="gateway.retry", error=str(error))
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                await asyncio.sleep(RETRY_DELAY_S)
                with contextlib.suppress(Unavailable):
                    return await work()
    except TimeoutError as error:
        raise unavailable(
            "the broker didn't confirm in time; it may have been stored. "
            "Repeat with the same idempotency key to be sure"
        ) from error
