"""What makes a kind of entity one that is kept on the board, and what a revision of one is. Pure.

A kind is a row of data: its record, how many of an owner's may be open, and what one must be among
the others. Which kinds there are, is said in `kinds`; the store (`kept`) knows none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import msgspec

from ..contracts import Change
from ..errors import InvalidInput, VigilError


class Entity(Protocol):
    """What all that is kept has: an id that is unique among its owner's, and whose it is."""

    __struct_config__: ClassVar[Any]

    @property
    def id(self) -> str: ...

    @property
    def owner(self) -> str: ...

    @property
    def agent(self) -> str: ...


E = TypeVar("E", bound=Entity)


class BoundReached(InvalidInput):
    """There are as many open ones of that kind as an owner may have."""


class BoardRefusal(VigilError):
    """What is asked for can't be, and why, in words that stand alone.

    Args:
        field: of the request, that is to blame.
        is_conflict: only as things are now; otherwise it never can.
    """

    def __init__(self, why: str, field: str | None = None, *, is_conflict: bool = False) -> None:
        super().__init__(why)
        self.field = field
        self.is_conflict = is_conflict


class KeptKind(msgspec.Struct, Generic[E], frozen=True):
    """One kind of entity that is kept on the board."""

    record: type[E]
    open_max: int
    """Of an owner's."""
    is_open: Callable[[E, datetime], bool]
    """Whether one counts."""
    fit: Callable[[E, list[E]], E] | None = None
    """Makes one fit among all of the owner's, ended ones and itself, too. Raises: InvalidInput."""
    place: Callable[[E], str] | None = None
    """Of a log: where one stands, in the place of an older one."""
    merge: Callable[[E | None, E], E] | None = None
    """Of what is learned: makes what is known after a lesson of what was known before, if anything
    was. Raises: InvalidInput."""

    @property
    def name(self) -> str:
        return str(self.record.__struct_config__.tag)


class Revision(msgspec.Struct, Generic[E], frozen=True, kw_only=True):
    """An entity as one revision has it."""

    entity: E
    number: int
    """The place of its entry; a change names it."""
    at: datetime
    change: Change
