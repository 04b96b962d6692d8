"""``python -m services.cortex.replay``: what `vigil replay` finds, a JSON object a line."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator
from datetime import datetime

import msgspec

from vigil.backup import reach
from vigil.bus.bus import Bus
from vigil.errors import VigilError
from vigil.observe import logs
from vigil.settings import config
from vigil.settings.config import Settings
from vigil.subjects import SessionKey

from ..policy import paths
from .counterfactual import Supposed, supposed
from .log import LONG_AGO, Replayed, replay, sessions


class ReplayRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to fold, as JSON on the standard input."""

    session: str = ""
    """Empty: all."""
    since: datetime | None = None
    changed: tuple[str, ...] = ()
    """Settings that are other than they were: then it's told what would have been."""


def main() -> None:
    """Fold what is asked for. What is logged goes to the standard error: the other is JSON."""
    logs.configure(level=logging.WARNING)
    try:
        asked = msgspec.json.decode(sys.stdin.buffer.read(), type=ReplayRequest)
        asyncio.run(_print(config.load(), asked))
    except VigilError as error:
        sys.exit(str(error))


async def _print(settings: Settings, asked: ReplayRequest) -> None:
    for name in asked.changed:
        if name not in paths().values():
            raise VigilError(f"--with {name}: the core decides nothing by it, or not by it alone")
    async with reach.admin(settings) as reached:
        async for found in _found(reached.bus, settings, asked):
            sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")


async def _found(
    bus: Bus, settings: Settings, asked: ReplayRequest
) -> AsyncIterator[Replayed | Supposed]:
    keys = [SessionKey.parse(asked.session)] if asked.session else await sessions(bus)
    for key in keys:
        fold = supposed if asked.changed else replay
        yield await fold(bus, key, settings.config, asked.since or LONG_AGO)


if __name__ == "__main__":
    main()
