"""The bucket PINS: what was approved of which server, followed as it changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import structlog

from vigil.bus.bus import Bus
from vigil.bus.kv import KeyValue, Watch
from vigil.contracts import Pins, decode_pins, encode
from vigil.errors import InvalidInput, Unavailable, WrongLastSequence
from vigil.worker.patience import Patience

log = structlog.get_logger("vigil.executor.mcp")

BUCKET: Final = "PINS"


class Pinning:
    """What is approved at present. Any number of replicas, and the command line, write it."""

    def __init__(self, bus: Bus, on_change: Callable[[str], None]) -> None:
        self._bucket = KeyValue(bus, BUCKET)
        self._on_change = on_change
        self._pins: dict[str, Pins] = {}
        self._watch: Watch | None = None

    async def start(self) -> None:
        """Read what is stored, and follow it."""
        self._watch = await self._bucket.watch(self._changed)

    async def close(self) -> None:
        if self._watch is not None:
            await self._watch.close()

    def of(self, server: str) -> Pins | None:
        """Return what was approved of a server; None: it was never seen."""
        return self._pins.get(server)

    async def create(self, pins: Pins) -> Pins:
        """Pin what a server offers at first sight; return what holds: another may have been first.

        Waits for the broker.
        """
        return await Patience(None).run(partial(self._create, pins))

    async def _create(self, pins: Pins) -> Pins:
        try:
            await self._bucket.create(pins.server, encode(pins))
        except (WrongLastSequence, Unavailable):
            pass  # what is stored is read back
        else:
            log.info(
                "pinned at first sight",
                action="mcp.pinned",
                server=pins.server,
                tools=sorted(pins.tools),
            )
        entry = await self._bucket.get(pins.server)
        if entry is None:
            raise Unavailable(f"the pins of {pins.server} are not stored yet")
        return self._take(pins.server, entry.value)

    def _changed(self, server: str, value: bytes | None) -> None:
        if value is None:
            self._pins.pop(server, None)
        else:
            self._take(server, value)
        self._on_change(server)

    def _take(self, server: str, value: bytes) -> Pins:
        try:
            pins = decode_pins(value)
        except InvalidInput as error:
            log.error("pins not readable", action="mcp.pins", server=server, error=str(error))
            pins = Pins(server=server)  # nothing of it is approved
        self._pins[server] = pins
        return pins
