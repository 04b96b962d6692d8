"""Sign-ins to servers that a person makes, or takes back, while the executor runs.

A server that waits for one would otherwise be asked again when its pause is over, a minute later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from vigil.clock import until_next
from vigil.oauth import kept
from vigil.settings.live import followed, stamps
from vigil.settings.servers import McpServer


class SignIns:
    """Which sign-in each server has; exchanged tokens are no other one."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._stamps: dict[str, stamps.Stamp | None] = {}
        self._ids: dict[str, str] = {}

    def changed(self, servers: Mapping[str, McpServer]) -> list[str]:
        """Return which servers, each with a URL, have another sign-in, or none any more, since this
        was last asked. Blocks."""
        found: list[str] = []
        for name, server in servers.items():
            stamp = stamps.stamp_of(kept.path_of(self._home, name))
            if name in self._stamps and self._stamps[name] == stamp:
                continue
            kept_now = None if stamp is None else kept.read(self._home, name, server.url)
            id_ = "" if kept_now is None else kept_now.id
            if name in self._stamps and self._ids[name] != id_:
                found.append(name)
            self._stamps[name], self._ids[name] = stamp, id_
        return found

    async def follow(
        self,
        servers: Callable[[], Mapping[str, McpServer]],
        take: Callable[[list[str]], Awaitable[None]],
    ) -> None:
        """Look until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            # A thread a second is most of what an executor costs that has no server elsewhere.
            elsewhere = {name: server for name, server in servers().items() if server.url}
            if elsewhere and (changed := await asyncio.to_thread(self.changed, elsewhere)):
                await take(changed)
            await asyncio.sleep(until_next(followed.POLL_S, loop.time()))
