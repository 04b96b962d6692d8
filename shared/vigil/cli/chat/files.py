"""`/attach PATH` in a chat: files that go with what the person says next.

Only at a terminal: what comes from a pipe may be by anybody, and would name files of this machine.
"""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from typing import Any

import msgspec

from vigil.contracts import Attachment
from vigil.errors import VigilError
from vigil.sdk.client import Client
from vigil.words.slash import SlashOrder

from .screen import Screen


class Files:
    """What was attached, and not said yet."""

    def __init__(self, client: Client, screen: Screen) -> None:
        self._client = client
        self._screen = screen
        self._hashes: list[str] = []

    async def obey(self, order: SlashOrder) -> None:
        """Upload what an order names."""
        path = path_of(order.rest)
        answer = order.command.usage if path is None else await self._attach(path)
        self._screen.notice(answer)

    def given(self) -> list[str]:
        """Return the hashes of what was attached; they go with one message."""
        hashes, self._hashes = self._hashes, []
        return hashes

    async def _attach(self, path: Path) -> str:
        try:
            about = await asyncio.to_thread(_upload, self._client, path)
            found = msgspec.convert(about, Attachment)
        except OSError as error:
            return f"not attached: {error.strerror or error}: {path}"
        except VigilError as error:
            return f"not attached: {error}"
        if found.hash not in self._hashes:
            self._hashes.append(found.hash)
        return f"goes with what you say next: {found.in_words}"


def _upload(client: Client, path: Path) -> dict[str, Any]:
    if path.exists() and not path.is_file():  # reading a pipe or a terminal may never end
        raise IsADirectoryError(None, "is no file")
    return client.upload(path.name, path.read_bytes())


def path_of(given: str) -> Path | None:
    r"""Return the path that somebody typed, or dragged to the terminal, which quotes it.

    >>> path_of(r"plan\ b.pdf"), path_of("'plan b.pdf'"), path_of("plan b.pdf"), path_of(" ")
    (PosixPath('plan b.pdf'), PosixPath('plan b.pdf'), PosixPath('plan b.pdf'), None)
    """
    given = given.strip()
    try:
        words = shlex.split(given)
    except ValueError:  # an apostrophe in a name
        words = [given]
    if not words:
        return None
    return Path(words[0] if len(words) == 1 else given).expanduser()
