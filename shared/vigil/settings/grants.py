"""Standing grants by configuration: ``[[grants]]`` (LOOPS L-8). Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace

from ..contracts import Grant, Instant
from ..contracts.board.grant import AnyConstraint
from ..contracts.effects import canonical
from ..errors import InvalidInput
from ..fields.section import Section
from ..grants.check import check
from ..teams import Teams, check_user, owner_of

LONG_AGO: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""An end that has passed since it was written is none that keeps a service from starting."""


class GrantSection(Section, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent may do without asking, one `[[grants]]` each."""

    # What is left out isn't written: a key of a later version leaves the ids of grants as they are.

    name: str
    """Short: 1..32 of a-z, 0-9 and -."""
    user: str
    """For whom it works then."""
    agent: str = "vigil"
    """Who may."""
    tool: str
    """`shell`, `server__tool` or `server__*`."""
    constraints: tuple[AnyConstraint, ...] = ()
    """What the arguments must be: `{kind = "argv", argv = ["df", "-h"], more = "operands"}`."""
    session_key: str = ""
    """The one conversation that it holds in; empty: all of the agent's."""
    row: str = ""
    """The one row of the timetable whose runs it holds in, by its id; empty: it's for no row."""
    goal: str = ""
    """The one goal that it holds for, by its id; empty: it's for no goal."""
    expires_at: Instant | None = None
    """Absent: it holds until it is removed here."""
    uses_max: int = 0
    """0: no limit."""
    holds_for_outside: bool = False
    """Also once outside content had a part in the decision."""
    why: str = ""
    """For yourself."""


def grant_of(section: GrantSection, teams: Teams, now: datetime) -> Grant:
    """Return the grant that a section makes; its id is the same as long as the section is.

    Raises:
        InvalidInput: it would allow everything, or can't be understood.
    """
    digest = hashlib.sha256(canonical(section)).hexdigest()
    same = {
        field: getattr(section, field) for field in section.__struct_fields__ if field != "user"
    }
    owner = owner_of(check_user(section.user), section.agent, teams)
    made = Grant(
        id=digest[:32], owner=owner, made_by="configuration", made_at=LONG_AGO, cause=digest, **same
    )
    check(made)
    return replace(made, made_at=now)


def mistakes(sections: Sequence[GrantSection], teams: Teams) -> list[str]:
    """List what is wrong, each with the section, the field and the reason."""
    found = []
    names = [(one.user, one.name) for one in sections]
    for section in sections:
        try:
            grant_of(section, teams, LONG_AGO)
        except InvalidInput as error:
            found.append(f"[[grants]] {section.name!r}: {error}")
        if names.count((section.user, section.name)) > 1:
            found.append(f"[[grants]] {section.name!r}: {section.user} has another of that name")
    return found
