"""Doing what may be repeated until the broker answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from vigil.backoff import Backoff
from vigil.errors import Unavailable
from vigil.worker.patience import Patience

from .http.problem import unavailable

T = TypeVar("T")

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
        first = error
    patience = Patience("gateway.retry", Backoff(RETRY_DELAY_S, RETRY_DELAY_S))
    try:
        async with asyncio.timeout(PATIENCE_S):
            await patience.after(first)
            return await patience.run(work)
    except TimeoutError as error:
        raise unavailable(
            "the broker didn't confirm in time; it may have been stored. "
            "Repeat with the same idempotency key to be sure"
        ) from error
