"""Clients that wait for an answer, and may go before it is there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, TypeVar

from vigil.background.end import end_tasks

from .http.body import ClientGone

T = TypeVar("T")


async def until_gone(receive: Any) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def answered(
    work: Coroutine[Any, Any, T],
    receive: Any,
    stopping: asyncio.Event,
    *,
    timeout_s: float,
    name: str,
) -> T | None:
    """Return what work comes to; None: it isn't over in time, or the process stops.

    Args:
        name: of the tasks that this takes.

    Raises:
        ClientGone: nobody waits for it any more.
        Exception: what the work raises.
    """
    working = asyncio.create_task(work, name=name)
    gone = asyncio.create_task(until_gone(receive), name=name)
    tasks: tuple[asyncio.Task[Any], ...] = (
        working,
        gone,
        asyncio.create_task(stopping.wait(), name=name),
    )
    try:
        done, _ = await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if working in done:
            return working.result()
        if gone in done:
            raise ClientGone
        return None
    finally:
        await end_tasks(*tasks)


async def serve_until_gone(
    serving: Coroutine[Any, Any, None], receive: Any, stopping: asyncio.Event, name: str
) -> None:
    """Serve to the end, or until the client goes or the process stops. Raises: what serving does,
    but for a client that went."""
    served = asyncio.create_task(serving, name=name)
    tasks: tuple[asyncio.Task[Any], ...] = (
        served,
        asyncio.create_task(until_gone(receive), name=name),
        asyncio.create_task(stopping.wait(), name=name),
    )
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await end_tasks(*tasks)
    if not served.cancelled():
        with contextlib.suppress(OSError):
            served.result()
