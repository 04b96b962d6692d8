"""What may be granted: each refusal names the field and the reason."""

from __future__ import annotations

import re
from typing import Final, assert_never

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
from ..errors import InvalidInput
from ..subjects import SessionKey, check_part
from ..texts.glyphs import is_printable
from ..zones.wall import END
from . import address, command, folder

BYTES_MAX: Final = 8 * 1024
"""Of a grant, as JSON."""
CONSTRAINTS_MAX: Final = 16
USES_MAX: Final = 1_000_000
WHY_LENGTH_MAX: Final = 500
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_ID: Final = re.compile(r"[0-9a-f]{32}")
_TOOL: Final = re.compile(r"[A-Za-z0-9_-]{1,64}|[A-Za-z0-9_-]*[A-Za-z0-9-]__\*")
_NEEDED: Final[dict[str, type[AnyConstraint]]] = {
    "shell": Argv,
    "http_get": Address,
    "read_file": Folder,
    "attach_file": Folder,
    "write_file": Folder,
}
"""Tools that are granted only with a constraint of that kind, or one that names all arguments."""


def check(grant: Grant) -> Grant:
    """Return a grant that may be made.

    Raises:
        InvalidInput: it would allow everything, or can't be understood.
    """
    if not _NAME.fullmatch(grant.name):
        raise InvalidInput("name", "must be 1..32 of a-z, 0-9 and -")
    check_part("owner", grant.owner)
    check_part("agent", grant.agent)
    if len(grant.why) > WHY_LENGTH_MAX or not is_printable(grant.why):
        raise InvalidInput("why", f"must be one line of at most {WHY_LENGTH_MAX} characters")
    _check_scope(grant)
    if not 0 <= grant.uses_max <= USES_MAX:
        raise InvalidInput("uses_max", f"must be 0..{USES_MAX}; 0: no limit")
    if grant.expires_at is not None and not grant.made_at < grant.expires_at < END:
        raise InvalidInput("expires_at", f"must be in the future, and before {END.year}")
    _check_tool(grant.tool)
    _check_constraints(grant)
    if len(canonical(grant)) > BYTES_MAX:
        raise InvalidInput("constraints", f"are more than {BYTES_MAX} bytes, as JSON")
    return grant


def _check_scope(grant: Grant) -> None:
    if grant.row and grant.session_key:
        raise InvalidInput("row", "must be empty where a conversation is named")
    if grant.goal and (grant.row or grant.session_key):
        raise InvalidInput("goal", "must be empty where a conversation or a row is named")
    if grant.row and not _ID.fullmatch(grant.row):
        raise InvalidInput("row", "must be the id of a row of the timetable: 32 hex digits")
    if grant.goal and not _ID.fullmatch(grant.goal):
        raise InvalidInput("goal", "must be the id of a goal: 32 hex digits")
    if not grant.session_key:
        return
    key = SessionKey.parse(grant.session_key)
    if (key.user, key.agent) != (grant.owner, grant.agent):
        raise InvalidInput("session_key", "must be of the same person and agent")


def _check_tool(tool: str) -> None:
    if tool in ("*", "", "__*") or set(tool) <= set("_*"):
        raise InvalidInput("tool", "must be one tool, or a server's (server__*); never all")
    if not _TOOL.fullmatch(tool):
        raise InvalidInput("tool", f"{tool[:64]!r} is neither a tool's name nor server__*")


def _check_constraints(grant: Grant) -> None:
    constraints = grant.constraints
    if len(constraints) > CONSTRAINTS_MAX:
        raise InvalidInput("constraints", f"must be at most {CONSTRAINTS_MAX}")
    is_exact = any(isinstance(one, Exact) for one in constraints)
    if is_exact and (len(constraints) > 1 or grant.tool.endswith("*")):
        raise InvalidInput("constraints", "'exact' names one call: it stands alone, for one tool")
    needed = _NEEDED.get(grant.tool)
    if needed and not is_exact and not any(isinstance(one, needed) for one in constraints):
        kind = needed.__struct_config__.tag
        raise InvalidInput("constraints", f"{grant.tool} is granted only with {kind!r} or 'exact'")
    names = [_place_of(one, grant) for one in constraints]
    if len(set(names)) < len(names):
        raise InvalidInput("constraints", "must be one for each argument")


def _place_of(constraint: AnyConstraint, grant: Grant) -> str:
    """Check a constraint; return the argument that it is about."""
    match constraint:
        case Argv():
            if grant.tool != "shell":
                raise InvalidInput("constraints", "'argv' is for shell")
            command.check(constraint)
            return "command"
        case Address():
            address.check(constraint)
        case Folder():
            folder.check(constraint)
        case Equal() | Empty():
            pass
        case Exact():
            return ""
        case _:
            assert_never(constraint)
    if not 0 < len(constraint.field) <= 200:
        raise InvalidInput("field", "must have 1..200 characters")
    return constraint.field
