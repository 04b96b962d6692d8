"""How what runs beside something is ended."""

from __future__ import annotations

import asyncio
from typing import Any


async def end_tasks(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks (or futures) that run beside the caller, and wait until they are over.

    What they raise isn't raised: whoever wants to know asks the task before. If the caller is
    cancelled while it waits, that is raised.
    """
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
