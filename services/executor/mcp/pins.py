"""Which tools of a server are what was approved. Pure.

What a server offers when it is first seen is trusted: whoever put it into the configuration chose
it. From then on a tool is offered only as long as it says of itself exactly what it said then; what
is new or has changed is held back until a person approves it (RELIABILITY S12).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from vigil.contracts import HeldTool, Pin, Pins, Tool

from .tools import OfferedTool, shortened

DESCRIPTION_LENGTH_MAX: Final = 1000
"""Of a description that is kept for a person to compare."""


class Sorted(msgspec.Struct, frozen=True, kw_only=True):
    """What of a server's offers is offered on."""

    kept: tuple[OfferedTool, ...] = ()
    held: tuple[HeldTool, ...] = ()


def sort(found: Sequence[OfferedTool], pins: Pins) -> Sorted:
    """Tell what may be offered from what is held back."""
    kept: list[OfferedTool] = []
    held: list[HeldTool] = []
    for offer in found:
        pin = pins.tools.get(offer.tool.name)
        if pin is not None and pin.digest == offer.tool.digest:
            kept.append(offer)
        else:
            held.append(_held(offer.tool, pin))
    return Sorted(kept=tuple(kept), held=tuple(held))


def _held(tool: Tool, pin: Pin | None) -> HeldTool:
    return HeldTool(
        name=tool.name,
        digest=tool.digest,
        pinned="" if pin is None else pin.digest,
        description=shortened(tool.description, DESCRIPTION_LENGTH_MAX),
    )


def first_sight(server: str, found: Sequence[OfferedTool], at: datetime) -> Pins:
    """Return what is pinned when a server is seen for the first time: all of it."""
    return Pins(
        server=server,
        tools={
            offer.tool.name: Pin(
                digest=offer.tool.digest,
                at=at,
                description=shortened(offer.tool.description, DESCRIPTION_LENGTH_MAX),
            )
            for offer in found
        },
    )
