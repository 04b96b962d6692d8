"""Sign-ins to MCP servers that people are about to make, in this process.

One that begins at a gateway has to come back to it; who waited longer than a restart begins anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vigil.settings.servers import McpServer

if TYPE_CHECKING:
    from vigil.oauth.signing_in import SigningIn

PENDING_MAX: Final = 32


class PendingSignIns:
    """By the state that comes back with a browser, and by server: a later one ends an earlier."""

    def __init__(self) -> None:
        self._pending: dict[str, tuple[str, SigningIn]] = {}
        self._ending: set[asyncio.Task[Any]] = set()

    async def begin(
        self,
        home: Path,
        name: str,
        section: McpServer,
        redirect: str,
        ports_never: Collection[int],
    ) -> str:
        """Begin one -> the link that a person is to follow. Raises: SignInFailed."""
        from vigil.oauth.signing_in import (
            SigningIn,
        )  # the SDK takes 20 MiB, and most sign in to none

        made = SigningIn(home, name, section, redirect, ports_never=ports_never)
        try:
            link = await made.begin()
        except BaseException:
            await made.close()
            raise
        of_it = [state for state, (server, _) in self._pending.items() if server == name]
        too_many = list(self._pending)[: max(0, len(self._pending) - PENDING_MAX + 1)]
        for state in {*of_it, *too_many}:
            self._end(state)
        self._pending[made.state] = name, made
        return link

    async def come_back(self, query: str) -> str | None:
        """Take what a browser came back with -> the server's name, once signed in; None: nobody
        waits for it. Raises: SignInFailed."""
        from vigil.oauth.signing_in import came_back

        found = came_back(query)
        name, made = self._pending.pop(found.state, (None, None))
        if made is None:
            return None
        try:
            made.come_back(found)
            await made.finish()
        finally:
            await made.close()
        return name

    def _end(self, state: str) -> None:
        _, made = self._pending.pop(state)
        ending = asyncio.create_task(made.close())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """End what nobody came back with."""
        for state in list(self._pending):
            self._end(state)
        await asyncio.gather(*self._ending)
