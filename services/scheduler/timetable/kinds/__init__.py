"""The kinds of rows of the timetable: one module each, whose `KIND` says all there is to it.

This is the registry: a module that is put here is a kind. Its work is a struct of the union `Work`
(`vigil.contracts.board.row`), the sessions that run it are a profile of the cortex's.
"""

from __future__ import annotations

import functools

from vigil.contracts.board import Work
from vigil.registry import declared

from ..row_kind import RowKind, RowMaker


@functools.cache
def registered() -> dict[type[Work], RowKind]:
    """Return every kind by its work."""
    return {kind.work: kind for kind in declared(__name__, RowKind)}


def kind_of(work: Work) -> RowKind:
    """Return what is particular to rows with such work."""
    return registered()[type(work)]


def of_system() -> tuple[RowMaker, ...]:
    """Return what makes the rows that each agent has for each person, one of each kind."""
    return tuple(kind.row for kind in registered().values() if kind.row is not None)


@functools.cache
def quiet_reasons() -> frozenset[str]:
    """Return why entries may wait for others like them, whatever they are of."""
    return frozenset(reason for kind in registered().values() for reason in kind.quiet)
