"""Imports of libraries that load more than they need, if it happens to be installed."""

from __future__ import annotations

import importlib
import sys


def import_without(module: str, unneeded: str) -> None:
    """Import `module`, for which `unneeded` then isn't there, if neither is imported yet."""
    if module in sys.modules or unneeded in sys.modules:
        return
    sys.modules[unneeded] = None  # type: ignore[assignment]  # so that importing it fails
    try:
        importlib.import_module(module)
    finally:
        del sys.modules[unneeded]
