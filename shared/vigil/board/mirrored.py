"""What a kind that sessions decide is to those outside: requests to a person, and jobs. Pure.

Its module is one of `kinds`, as of every kind, and it is listed and shown as others are. But the
board isn't the truth of it: what stands there is written from its session's turns (`mirror`), may
be a moment behind, and has no revision that a change could name. So whoever makes or changes one
gives its session an order, which is stored and answered with its place in the log. What that takes
is written by hand: in `services.gateway.board`, and for people in `vigil.cli.commands`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from ..contracts import Approval, Job
from ..fields.bodies import Answer
from .outside import BodyOperation, ServedKind, fields_of

E = TypeVar("E", bound=Approval | Job)


class OrderOperation(BodyOperation, frozen=True, kw_only=True):
    """An order to the session."""

    name: str
    """`operationId` of the OpenAPI document."""
    answer: type[Answer] | None = None
    """None: where it stands in the log."""


class MirroredKind(ServedKind, Generic[E], frozen=True, kw_only=True, eq=False):
    """A kind of what sessions put on the board."""

    record: type[E]
    short_name: str = ""
    """A pattern of what is taken for an id, too; empty: nothing is."""
    query: type[msgspec.Struct] | None = None
    """What the whole query of a list is read into, if unknown parameters are refused."""
    session_text: str = ""
    """What the document says of the parameter that names who asks; empty: there is none."""
    facts: Callable[[E], dict[str, Any]] = lambda _: {}
    """What the view has that the record hasn't, or has otherwise."""
    brief: Callable[[E], dict[str, Any]] = lambda _: {}
    """The same where it is one of a list."""
    makes: OrderOperation | None = None
    changes: OrderOperation

    def listing(self, found: list[E], limit: int) -> Answer:
        """Return the first of these, as a list answers them."""
        page = found[:limit]
        views = tuple(self._view(self.view, one, self.brief(one)) for one in page)
        more = {"next_after": page[-1].id} if len(found) > len(page) else {}
        return self.lists.answer(**{self.plural: views}, **more)

    def answer(self, one: E) -> Answer:
        """Return what a question for one answers."""
        return self._view(self.detail or self.view, one, {})

    def _view(self, kind: type[Answer], one: E, own: dict[str, Any]) -> Answer:
        return kind(**fields_of(kind, one, self.facts(one) | own))
