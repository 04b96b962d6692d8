"""Vigil: agents that act on their own and can be trusted to.

For programs: `Client` speaks HTTP with a token, `BusClient` NATS with a credential of its own.
They are imported when they are first used, so that importing this package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .sdk.bus_client import BusClient
    from .sdk.client import ApiError, Client

__version__ = "0.1.0"
__all__ = ["ApiError", "BusClient", "Client", "__version__"]

_HOMES: Final = {"ApiError": ".sdk.client", "BusClient": ".sdk.bus_client", "Client": ".sdk.client"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name], __name__), name)
