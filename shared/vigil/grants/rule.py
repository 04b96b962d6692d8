"""Which standing grant covers a call, if any; and of the others, why not.

A grant covers a call if it is the owner's, for that agent, tool and session, neither expired nor
revoked nor used up, and every constraint holds. If content from outside had a part in the decision,
only one that says so covers it. What can't be undone is covered by its exact arguments alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import msgspec

from ..contracts.board.grant import (
    Address,
    AnyConstraint,
    Argv,
    Empty,
    Equal,
    Exact,
    Folder,
    Grant,
)
from ..contracts.effects import canonical
from ..contracts.tools import Risk
from ..subjects import SessionKey
from . import address, command, folder

COMMAND: Final = "command"
"""The argument of `shell` that a command line stands in."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A grant as it stands on the board."""

    grant: Grant
    revision: int
    """The place of its newest entry."""
    uses: int = 0
    last_used_at: datetime | None = None


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A call that needs leave."""

    key: SessionKey
    """The session that makes it."""
    tool: str
    risk: Risk
    input: dict[str, Any]
    is_outside: bool
    """Whether content from outside had a part in the decision."""
    now: datetime
    row: str = ""
    """The row of the timetable that the session came from; empty: none."""
    goal: str = ""
    """The goal that it's done for; empty: none."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a look for a grant told."""

    standing: Standing | None
    """The first that covers the call."""
    reasons: dict[str, str] = {}
    """Why others of that tool don't, by their names."""


NOTHING: Final[tuple[Any, ...]] = (None, "", [], {})
"""What an argument has to be for `Empty`, if it's given."""


def match(standing: Iterable[Standing], wanted: Wanted) -> Found:
    """Return the grant that covers a call."""
    reasons: dict[str, str] = {}
    for one in standing:
        if not is_for(one.grant.tool, wanted.tool):
            continue
        reason = obstacle(one, wanted)
        if reason is None:
            return Found(standing=one)
        reasons[one.grant.name] = reason
    return Found(standing=None, reasons=reasons)


def obstacle(standing: Standing, wanted: Wanted) -> str | None:
    """Return why a grant doesn't cover a call; None: it does."""
    grant = standing.grant
    misfit = _misfit(grant, wanted) or ending(standing, wanted.now)
    if misfit is not None:
        return misfit
    if wanted.is_outside and not grant.holds_for_outside:
        return "content from outside had a part, and the grant doesn't say that it holds then"
    is_exact = any(isinstance(one, Exact) for one in grant.constraints)
    if wanted.risk == "destructive" and not is_exact:
        return "it can't be undone, and the grant doesn't name exactly this call"
    reasons = (_broken(constraint, wanted.input) for constraint in grant.constraints)
    return next((reason for reason in reasons if reason is not None), None)


def _misfit(grant: Grant, wanted: Wanted) -> str | None:
    if (grant.owner, grant.agent) != (wanted.key.user, wanted.key.agent):
        return "it's somebody else's"
    if not is_for(grant.tool, wanted.tool):
        return "it's for another tool"
    if grant.session_key and grant.session_key != str(wanted.key):
        return "it's for another conversation"
    if grant.row and grant.row != wanted.row:
        return "it's for the runs of another row of the timetable"
    if grant.goal and grant.goal != wanted.goal:
        return "it's for another goal"
    return None


def ending(standing: Standing, now: datetime) -> str | None:
    """Return why a grant holds for nothing any more; None: it stands."""
    grant = standing.grant
    if grant.revoked_at is not None:
        return "it was revoked"
    if grant.expires_at is not None and grant.expires_at <= now:
        return "it expired"
    if grant.uses_max and standing.uses >= grant.uses_max:
        return "it is used up"
    return None


def emptied(grant: Grant, now: datetime) -> Grant:
    """Return a grant that ends with the one conversation that it holds in: what it allowed there
    goes with that, and that there was one stays."""
    ended_at = grant.revoked_at or now
    return msgspec.structs.replace(grant, constraints=(), why="", cause="", revoked_at=ended_at)


def is_emptied(grant: Grant) -> bool:
    """Whether a grant has ended, and says nothing any more of what it allowed."""
    return grant.revoked_at is not None and grant == emptied(grant, grant.revoked_at)


def is_for(granted: str, tool: str) -> bool:
    """Whether a grant's tool, or all of a server's, is that tool.

    >>> is_for("files__*", "files__read"), is_for("files__*", "files2__read")
    (True, False)
    """
    if granted.endswith("__*"):
        return len(tool) >= len(granted) and tool.startswith(granted[:-1])
    return granted == tool


def _broken(constraint: AnyConstraint, given: dict[str, Any]) -> str | None:
    match constraint:
        case Argv():
            return command.obstacle(constraint, given.get(COMMAND))
        case Address():
            return address.obstacle(constraint, given.get(constraint.field))
        case Folder():
            return folder.obstacle(constraint, given.get(constraint.field))
        case Equal():
            is_it = constraint.field in given and _are_same(
                given[constraint.field], constraint.value
            )
            return None if is_it else f"{constraint.field} is another"
        case Empty(field=field):
            return None if given.get(field) in NOTHING else f"{field} isn't empty"
        case Exact():
            return None if _are_same(given, constraint.input) else "the arguments are others"


def _are_same(one: Any, other: Any) -> bool:
    """Compare as JSON: `1` is neither `1.0` nor `true`."""
    return canonical(one) == canonical(other)
