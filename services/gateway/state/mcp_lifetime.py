"""Keeps what the MCP SDK needs to be running: a group of tasks that lives in one task of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


class McpRunning:
    """Starts the SDK's manager with the first request, and ends it with the gateway."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._manager: Any = None
        self._task: asyncio.Task[None] | None = None

    async def started(self, build: Callable[[], Any]) -> Any:
        """Return the manager, running; `build` makes it, in a thread, if there is none any more."""
        async with self._lock:
            if self._manager is None or (self._task is not None and self._task.done()):
                manager = await asyncio.to_thread(build)
                running = asyncio.Event()
                self._task = asyncio.create_task(self._run(manager, running), name="gateway-mcp")
                waiting = asyncio.create_task(running.wait())
                await asyncio.wait({waiting, self._task}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                if self._task.done():
                    self._task.result()
                self._manager = manager
            return self._manager

    async def _run(self, manager: Any, running: asyncio.Event) -> None:
        # Entered and left in one task, as its group of tasks demands.
        async with manager.run():
            running.set()
            await asyncio.Event().wait()

    async def close(self) -> None:
        """End it; what is being answered is cut off."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
