"""A folder as a registry: a module that is put there is asked for what it declares."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar, get_type_hints

T = TypeVar("T")


def modules_of(package: str) -> tuple[ModuleType, ...]:
    """Return the modules of a package, imported, by name; what is in its folders is left out.

    >>> modules_of("vigil.signals")[0].__name__
    'vigil.signals.board'
    """
    path = importlib.import_module(package).__path__
    names = sorted(info.name for info in pkgutil.iter_modules(path) if not info.ispkg)
    return tuple(importlib.import_module(f"{package}.{name}") for name in names)


def declared(package: str, kind: type[T]) -> tuple[T, ...]:
    """Return every object of a kind that the modules of a package hold, by module."""
    return tuple(
        one
        for module in modules_of(package)
        for one in vars(module).values()
        if isinstance(one, kind)
    )


def arguments_of(function: Callable[..., Any]) -> Any:
    """Return the type of a function's first parameter: what a call of it must fit."""
    first, *_ = get_type_hints(function).values()
    return first
