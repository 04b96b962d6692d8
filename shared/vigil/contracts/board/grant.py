"""Standing grants: calls that a person allowed beforehand, and how often each was used (LOOPS L-8).

Two records, since two write them. What a person allows is theirs alone: no service but the gateway
may publish a `Grant`. Uses are counted by the executor in a `GrantUse` beside it, so that counting
neither needs the right to grant nor comes between a person and the revision that they read.
"""

from __future__ import annotations

from typing import Any, Literal

from ..base import Instant, Record

More = Literal["nothing", "operands", "anything"]
"""What may follow the arguments that a grant names: nothing, what is no option, or whatever."""


class Constraint(Record, frozen=True, kw_only=True, tag_field="kind", forbid_unknown_fields=True):
    """What the arguments of a call have to be. Of a grant, all have to hold; so one that isn't
    understood whole makes the grant unreadable."""


class Argv(Constraint, frozen=True, kw_only=True, tag="argv"):
    """`shell`: one program and its first arguments. What may stand in the command line at all is
    said in `vigil.grants.command`; it's run without a shell."""

    argv: tuple[str, ...]
    more: More = "nothing"


class Address(Constraint, frozen=True, kw_only=True, tag="url"):
    """A URL: exactly this scheme, host and port, and a path that begins with these segments."""

    field: str = "url"
    scheme: Literal["https", "http"] = "https"
    host: str
    """In lower case; of names beyond ASCII the form that is looked up (``xn--``)."""
    port: int
    path: str = "/"


class Folder(Constraint, frozen=True, kw_only=True, tag="folder"):
    """A path in this folder, or below it."""

    field: str = "path"
    folder: str


class Equal(Constraint, frozen=True, kw_only=True, tag="equal"):
    """An argument with exactly this value."""

    field: str
    value: Any


class Empty(Constraint, frozen=True, kw_only=True, tag="empty"):
    """An argument that isn't given, or says nothing: nobody else is invited. One that a grant
    doesn't name is free, so that an outsider could invite themselves."""

    field: str


class Exact(Constraint, frozen=True, kw_only=True, tag="exact"):
    """Exactly these arguments and no others: the one kind that holds for what can't be undone."""

    input: dict[str, Any]


AnyConstraint = Argv | Address | Folder | Equal | Empty | Exact
GrantMaker = Literal["person", "approval", "configuration"]


class Grant(Record, frozen=True, kw_only=True, tag_field="kind", tag="grant"):
    """What an agent may do for a person without asking."""

    id: str
    """32 hex digits."""
    name: str
    """Short, for people: ``g7``."""
    owner: str
    agent: str
    tool: str
    """``shell``, ``server__tool``, or ``server__*``: each of that server."""
    constraints: tuple[AnyConstraint, ...] = ()
    session_key: str = ""
    """The one conversation that it holds in; empty: each session of the agent's for that person."""
    row: str = ""
    """The one row of the timetable whose runs it holds in, and what they start; empty: any, and
    none."""
    goal: str = ""
    """The one goal that it holds for: in what is done for it, and what that starts; empty: any,
    and none."""
    expires_at: Instant | None = None
    uses_max: int = 0
    """0: as often as it's needed."""
    holds_for_outside: bool = False
    """Whether it also holds once content from outside had a part in the decision."""
    made_by: GrantMaker = "person"
    made_at: Instant
    cause: str = ""
    """`approval`: the request that it was made of; `configuration`: SHA-256 of the section."""
    why: str = ""
    """The reason, in the person's words."""
    revoked_at: Instant | None = None


class GrantUse(Record, frozen=True, kw_only=True, tag_field="kind", tag="use"):
    """How often a grant was used."""

    id: str
    """The grant's."""
    owner: str
    agent: str
    uses: int
    last_used_at: Instant
    tool: str
    session_key: str
    """The session of the newest use."""
    calls: tuple[str, ...] = ()
    """The effects of the newest uses, and of those that may come again, the newest last: a repeat
    of one isn't counted twice."""
