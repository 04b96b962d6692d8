"""Workspaces that are given to a server's program: what it may have written there (SPEC X-3).

A server reads and writes beside the tools, whenever it likes. So while its program runs it counts
as a command that runs in each workspace that it was given: of a server that isn't trusted, all
that is there is marked. One that is trusted may have read there what is marked, and may write what
a call brought it; so each call of it is looked at as a command would be.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from vigil.errors import ConfigError
from vigil.settings.config import Settings
from vigil.settings.servers import McpServer
from vigil.subjects import Scope

from ..workspace.marks import Marks
from ..workspace.workspace import Workspace


def scope_of(folder: Path, root: Path) -> Scope | None:
    """Return whose workspace a folder is, or is in; None: nobody's.

    Args:
        folder, root: without symbolic links; `root` is that of all workspaces.

    Raises:
        ConfigError: it would show several, and the marks beside them.
    """
    if root.is_relative_to(folder):
        raise ConfigError(f"folders: {str(folder)!r} holds the workspaces of all; name one of them")
    if not folder.is_relative_to(root):
        return None
    parts = folder.relative_to(root).parts
    if len(parts) < 2 or "." in parts[1]:
        raise ConfigError(f"folders: {str(folder)!r} must be one person's workspace, or in it")
    return Scope(parts[0], parts[1])


class Loans:
    """The workspaces that one server was given.

    Raises:
        ConfigError: a folder is no single workspace.
    """

    def __init__(self, config: McpServer, settings: Settings) -> None:
        self._is_trusted = config.is_trusted
        named = (*config.folders, *config.folders_read)
        root = settings.workspaces.resolve()
        folders = (Path(one).expanduser().resolve() for one in named)
        scopes = {scope for one in folders if (scope := scope_of(one, root)) is not None}
        self._marks = [Marks(Workspace(settings.workspaces, scope)) for scope in scopes]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Count the program as one that runs there, while the block does.

        Raises: Unavailable, the marks can't be written; then it must not run.
        """
        running = await asyncio.to_thread(self.begin, is_tainted=not self._is_trusted)
        try:
            yield
        finally:
            for one in running:
                os.close(one)

    def begin(self, *, is_tainted: bool) -> Sequence[int]:
        """Let a call run; return what to give to :meth:`end`. Blocks. Raises: Unavailable."""
        begun: list[int] = []
        try:
            for marks in self._marks:
                begun.append(marks.begin(is_tainted=is_tainted))
        except BaseException:
            for one in begun:
                os.close(one)
            raise
        return begun

    def end(self, begun: Sequence[int]) -> bool:
        """Tell whether the call may have seen what is from outside. Blocks."""
        seen = [marks.end(one) for marks, one in zip(self._marks, begun, strict=True)]
        return any(seen)

    def __bool__(self) -> bool:
        return bool(self._marks)
