"""Reading each list once while something is shown that is made of many.

A page asks for what it shows piece by piece, and several pieces need the same list: all of them are
to show one moment, and the broker is asked once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Final, TypeVar, cast

from ..background.end import end_tasks

T = TypeVar("T")
_READ: Final[ContextVar[dict[str, asyncio.Future[Any]] | None]] = ContextVar("read", default=None)


@contextlib.asynccontextmanager
async def read_once() -> AsyncIterator[None]:
    """Have what is asked `once` within, also by tasks that begin within, be read once.

    Nothing that is read so may be changed within: the change wouldn't be seen.
    """
    read: dict[str, asyncio.Future[Any]] = {}
    before = _READ.set(read)
    try:
        yield
    finally:
        _READ.reset(before)
        await end_tasks(*read.values())


async def once(name: str, read: Callable[[], Awaitable[T]]) -> T:
    """Return what `read` returns, or what it did in this block; outside of one, read.

    Args:
        name: of what is read: the same for the same only.
    """
    there = _READ.get()
    if there is None:
        return await read()
    if (found := there.get(name)) is None:
        found = there[name] = asyncio.ensure_future(read())
    return cast(T, await asyncio.shield(found))
