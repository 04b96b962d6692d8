"""Imports of libraries that load more than they need, if it happens to be installed."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from typing import Any


class LateModule:
    """Stands for a module until something of it is used."""

    __spec__ = None
    """What an import looks at."""

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


@contextlib.contextmanager
def imported_late(module: str) -> Iterator[None]:
    """Have what is imported meanwhile import `module`, which is in a package, when it uses it. If
    the package isn't among that, nothing changes."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = late = LateModule(module)  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[module]
    package, _, name = module.rpartition(".")
    if package in sys.modules:
        setattr(sys.modules[package], name, late)


def import_unbuilt(module: str) -> None:
    """Import `module`, of which Pydantic models are built once they are used, if they are; also
    those that it has built itself, as a module does for names that come later in it."""
    if module in sys.modules:
        return
    from pydantic import BaseModel

    config, bound = BaseModel.model_config, BaseModel.__dict__["model_rebuild"]

    def rebuild_if_used(model: type[BaseModel], /, **how: Any) -> bool | None:
        return bound.__func__(model, **how) if how else None  # nothing is said but by who uses it

    BaseModel.model_config = {**config, "defer_build": True}
    BaseModel.model_rebuild = classmethod(rebuild_if_used)  # type: ignore[assignment]
    try:
        importlib.import_module(module)
    finally:
        BaseModel.model_config = config
        BaseModel.model_rebuild = bound  # type: ignore[method-assign]
