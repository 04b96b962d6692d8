"""A row of the table of what the gateway serves over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec


class Endpoint(msgspec.Struct, frozen=True):
    """One method of one path: who answers, with what, and how it is described."""

    method: str
    path: str
    handler: Callable[..., Any]
    answers: dict[int, type | None]
    """By status; None: no body."""
    errors: tuple[int, ...] = ()
    body: type | None = None
    parameters: tuple[str, ...] = ()
    """Query parameters that the handler reads by itself."""
    described: dict[str, Any] = {}
    """What the document says of it that can't be told from the rest."""
    events: type | None = None
    """What the events of a stream hold, if it answers with Server-Sent Events."""
    query: type | None = None
    """The struct that it reads the whole query into."""
    may_be_empty: bool = False
    """Whether the body may be left out."""
