"""What a point says about itself, and which points a search may find. Pure.

Each backend turns these conditions into its own; none makes up one. `whose` and `allowed` are the
only places that say whose points are meant, so that a search can't be written without an owner
(SPEC M-2, RELIABILITY S13).
"""

from __future__ import annotations

import hashlib
from typing import Final, Literal

import msgspec

from vigil.subjects import Scope

from . import Point, Where

Payload = dict[str, str | float]

ID: Final = "memory"
"""The memory's id, for whoever looks at the points of a server."""
NUM: Final = "num"
"""Its number, where the points' own ids are others: on a server."""
LAYOUT: Final = 2
"""The form of points and what they say: others are made anew. 2: by number, of 16 bits."""
SCOPE: Final = "scope"
STANDING: Final = "standing"
"""The scope again, of points that have not ended: one look-up instead of two checks a point, which
halves a search over everything that an owner has."""
INDEXES: Final[dict[str, Literal["keyword", "float"]]] = {
    SCOPE: "keyword",
    STANDING: "keyword",
    "source": "keyword",
    "type": "keyword",
    "thread": "keyword",
    "trust": "keyword",
    "created_at": "float",
    "happened_at": "float",
    "ended_at": "float",
}
"""The payload fields that a search filters by: with an index, so that filters hold inside it."""


class Is(msgspec.Struct, frozen=True, tag="is"):
    key: str
    value: str


class IsOneOf(msgspec.Struct, frozen=True, tag="one_of"):
    key: str
    values: tuple[str, ...]


class Between(msgspec.Struct, frozen=True, tag="between"):
    """Both ends included; None: open."""

    key: str
    least: float | None = None
    most: float | None = None


class NotBy(msgspec.Struct, frozen=True, tag="not_by"):
    """The field is missing, or later than that."""

    key: str
    at: float


Condition = Is | IsOneOf | Between | NotBy
Conditions = tuple[Condition, ...]
"""All of them must hold."""


def whose(scope: Scope) -> Conditions:
    """Return what holds for all points of a scope and for no others."""
    return (Is(SCOPE, _token(scope)),)


def allowed(where: Where) -> Conditions:
    """Return what must hold for a point that a search may find.

    >>> allowed(Where(scope=Scope("vigil", "ann"), sources=("api",)))
    (Is(key='standing', value='vigil.ann'), IsOneOf(key='source', values=('api',)))
    """
    found: list[Condition] = []
    if where.with_pruned:
        found += whose(where.scope)
    elif where.as_of is None:
        found.append(Is(STANDING, _token(where.scope)))
    else:
        found += whose(where.scope)
        found += [Between("created_at", most=where.as_of), NotBy("ended_at", where.as_of)]
    if where.sources:
        found.append(IsOneOf("source", where.sources))
    if where.types:
        found.append(IsOneOf("type", where.types))
    if where.thread:
        found.append(Is("thread", where.thread))
    if where.only_trusted:
        found.append(Is("trust", "trusted"))
    if where.since is not None or where.until is not None:
        found.append(Between("happened_at", where.since, where.until))
    return tuple(found)


def payload_of(point: Point) -> Payload:
    """Return what the index stores beside the vector."""
    payload: Payload = {
        ID: point.id,
        SCOPE: _token(point.scope),
        "agent": point.scope.agent,
        "owner": point.scope.owner,
        "source": point.source,
        "type": point.type,
        "thread": point.thread,
        "trust": "tainted" if point.is_tainted else "trusted",
        "created_at": point.created_at,
        "happened_at": point.happened_at,
    }
    if point.ended_at is None:
        payload[STANDING] = _token(point.scope)
    else:
        payload["ended_at"] = point.ended_at
    return payload


def key_of(point: Point) -> str:
    """Return the point's own id, a UUID: two owners may have memories of the same id."""
    named = f"{_token(point.scope)}.{point.id}"
    digest = hashlib.sha256(named.encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"


def _token(scope: Scope) -> str:
    """Return a scope as one value. Its parts are checked: no dot in them moves the border."""
    checked = Scope.of(scope.agent, scope.owner)
    return f"{checked.agent}.{checked.owner}"
