"""The tools by name, each with the source that runs it; and their shelves, published for others.

What the cortex offers to models, and what people are shown, is read from the bucket TOOLS: one
`Shelf` for each source. Every replica of the executor publishes what it has; they are configured
alike, so mostly the first one writes and the others find it written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, Final

import msgspec
import structlog

from vigil.bus.bus import Bus, BusError
from vigil.bus.kv import KeyValue
from vigil.clock import Clock
from vigil.contracts import Shelf, Tool, decode_shelf, encode
from vigil.errors import InvalidInput, Unavailable, WrongLastSequence
from vigil.subjects import check_part
from vigil.worker.patience import Patience

from .source import ToolSource

log = structlog.get_logger("vigil.executor")

BUCKET: Final = "TOOLS"
TOO_LARGE: Final = "what it offers is too large to be published"


class Registry:
    """What this replica can run."""

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bucket = KeyValue(bus, BUCKET)
        self._clock = clock
        self._sources: dict[str, ToolSource] = {}
        self._shelves: dict[str, Shelf] = {}
        self._tools: dict[str, tuple[Tool, ToolSource]] = {}
        self._changed: dict[str, None] = {}
        """Names of sources whose shelf is to be published, in order."""
        self._has_changes = asyncio.Event()
        self._is_published = asyncio.Event()
        self._is_published.set()
        self.on_change: Callable[[], None] = lambda: None
        """Called whenever something else is offered."""

    @property
    def sources(self) -> tuple[ToolSource, ...]:
        return tuple(self._sources.values())

    def offered(self) -> Iterable[Tool]:
        """Return all tools that are offered at present."""
        return (tool for tool, _ in self._tools.values())

    @property
    def shelves(self) -> dict[str, Shelf]:
        """What each source offers, by its name."""
        return dict(self._shelves)

    def find(self, tool: str) -> tuple[Tool, ToolSource] | None:
        """Return a tool and who runs it; None: nobody offers it at present."""
        return self._tools.get(tool)

    def set(self, source: ToolSource) -> None:
        """Offer what is on the shelf of a source, in place of what it offered before.

        Raises:
            InvalidInput: its name can't be the key of a bucket.
        """
        name = check_part("source", source.shelf.source)
        self._sources[name] = source
        self._shelves[name] = source.shelf
        self._change(name)

    def remove(self, name: str) -> None:
        """Offer nothing of that source any more; what it runs is its own to end."""
        if self._sources.pop(name, None) is not None:
            del self._shelves[name]
            self._change(name)

    def _change(self, name: str) -> None:
        self._tools = {
            tool.name: (tool, source)
            for key, source in reversed(self._sources.items())  # of equal names the first counts
            for tool in self._shelves[key].tools
        }
        self._changed[name] = None
        self._is_published.clear()
        self._has_changes.set()
        self.on_change()

    def facts(self) -> dict[str, Any]:
        """Return what a person wants to know of it, as JSON values."""
        sources = {
            name: {"tools": len(shelf.tools), "held": len(shelf.held), "problem": shelf.problem}
            | shelf.facts
            for name, shelf in self._shelves.items()
        }
        return {"tools": len(self._tools), "sources": sources}

    # ------------------------------------------------------------ publishing

    async def published(self) -> None:
        """Wait until all that is offered stands in the bucket."""
        await self._is_published.wait()

    async def run(self, expected: Collection[str]) -> None:
        """Publish what changes, until cancelled.

        Args:
            expected: names of the sources that there may be; a shelf of another one was left by
                an earlier configuration and is removed.
        """
        await _patience().run(lambda: self._sweep(expected))
        while True:
            await self._has_changes.wait()
            self._has_changes.clear()
            while self._changed:
                name = next(iter(self._changed))
                del self._changed[name]
                await _patience().run(partial(self._publish, name))
            self._is_published.set()

    async def _publish(self, name: str) -> None:
        """Write the shelf of a source as it is now, unless that is what stands there."""
        shelf = self._shelves.get(name)
        if shelf is None:
            await self._bucket.delete(name)
            return
        try:
            await self._write(shelf)
        except BusError as error:
            log.error("shelf refused", action="executor.shelf", source=name, error=str(error))
            await self._write(msgspec.structs.replace(shelf, tools=(), held=(), problem=TOO_LARGE))

    async def _write(self, shelf: Shelf) -> None:
        entry = await self._bucket.get(shelf.source)
        if entry is not None and _is_same(entry.value, shelf):
            return
        await self._bucket.put(shelf.source, encode(shelf))
        log.info(
            "shelf published",
            action="executor.published",
            source=shelf.source,
            tools=len(shelf.tools),
            held=len(shelf.held),
            problem=shelf.problem,
        )

    async def _sweep(self, expected: Collection[str]) -> None:
        stored: dict[str, bytes | None] = {}
        watch = await self._bucket.watch(stored.__setitem__)
        await watch.close()
        for name, value in stored.items():
            if value is not None and name not in expected and name not in self._sources:
                await self._bucket.delete(name)


def _patience() -> Patience:
    return Patience("executor.publish", errors=(Unavailable, WrongLastSequence))


def _is_same(stored: bytes, shelf: Shelf) -> bool:
    """Whether that is stored already, whoever wrote it and when."""
    try:
        return msgspec.structs.replace(decode_shelf(stored), at=shelf.at) == shelf
    except InvalidInput:
        return False
