"""Imports of libraries that load more than they need, if it happens to be installed."""

from __future__ import annotations

import importlib
import sys
from typing import Any


class LateModule:
    """Stands for a module until something of it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found = getattr(importlib.import_module(self._name), name)
        setattr(self, name, found)  # the next time it is simply there
        return found


def import_without(module: str, unneeded: str) -> None:
    """Import `module`, for which `unneeded` then isn't there, if neither is imported yet."""
    if module in sys.modules or unneeded in sys.modules:
        return
    sys.modules[unneeded] = None  # type: ignore[assignment]  # so that importing it fails
    try:
        importlib.import_module(module)
    finally:
        del sys.modules[unneeded]


def import_unbuilt(module: str) -> None:
    """Import `module`, of which Pydantic models are built once they are used, if they are."""
    if module in sys.modules:
        return
    from pydantic import BaseModel

    config = BaseModel.model_config
    BaseModel.model_config = {**config, "defer_build": True}
    try:
        importlib.import_module(module)
    finally:
        BaseModel.model_config = config
