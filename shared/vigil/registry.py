"""A folder as a registry: a module that is put there is asked for what it declares."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, TypeVar, get_type_hints

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


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


def covering(what: str, found: Mapping[K, V], needed: Iterable[K]) -> Mapping[K, V]:
    """Return a table of something for each of a closed set, which has a row for all of them.

    Said where the table is made, so whoever adds to the set and not to the table is told as the
    module is imported, and not by the first that comes.

    >>> covering("words", {"cron": 1}, ["cron", "mind"])
    Traceback (most recent call last):
    LookupError: words: there is none for mind

    Raises:
        LookupError: one has no row.
    """
    missing = ", ".join(str(one) for one in needed if one not in found)
    if missing:
        raise LookupError(f"{what}: there is none for {missing}")
    return found


def arguments_of(function: Callable[..., Any]) -> Any:
    """Return the type of a function's first parameter: what a call of it must fit."""
    first, *_ = get_type_hints(function).values()
    return first
