"""The kinds of rows of the timetable: one module each, whose `KIND` says all there is to it.

This is the registry: a module that is put here is a kind. Its work is a struct of the union `Work`
(`vigil.contracts.board.row`), the sessions that run it are a profile of the cortex's.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from datetime import datetime
from typing import get_args

from vigil.contracts import TimetableRow
from vigil.contracts.board import Work
from vigil.registry import covering, declared
from vigil.settings.config import Config
from vigil.subjects import Scope

from ..row_kind import RowKind


@functools.cache
def registered() -> Mapping[type[Work], RowKind]:
    """Return every kind by its work. Raises: LookupError, some work has none."""
    found: dict[type[Work], RowKind] = {one.work: one for one in declared(__name__, RowKind)}
    return covering("kinds of rows", found, get_args(Work))


def kind_of(work: Work) -> RowKind:
    """Return what is particular to rows with such work."""
    return registered()[type(work)]


def of_system(config: Config, whose: Scope, zone: str, now: datetime) -> list[TimetableRow]:
    """Return the rows that an agent has for a person, made by nobody."""
    found: list[TimetableRow] = []
    for kind in registered().values():
        if kind.row is not None:
            found.append(kind.row(config, whose, zone, now))
        if kind.rows is not None:
            found += kind.rows(config, whose, zone, now)
    return found


@functools.cache
def quiet_reasons() -> frozenset[str]:
    """Return why entries may wait for others like them, whatever they are of."""
    return frozenset(reason for kind in registered().values() for reason in kind.quiet)
