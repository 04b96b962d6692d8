"""Beginning tasks in a group that may be about to end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


def begin(group: asyncio.TaskGroup, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Begin `work` in `group`.

    Raises:
        CancelledError: the group ends because another of its tasks failed, and is about to
            cancel us. So that failure is what is told, not that something came in meanwhile.
    """
    try:
        return group.create_task(work)
    except RuntimeError as error:
        work.close()
        raise asyncio.CancelledError from error
