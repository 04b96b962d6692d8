"""What a request names, and whether its caller may reach that; the rule is :mod:`vigil.teams`.

A session of somebody else's, or an id, is answered as if it weren't there (404). Who names another
user in a field is told so (403), as the user may be no secret and the field is the mistake; and so
is who names a team or its agent, of which they are no member, in a field or a session key.
"""

from __future__ import annotations

from typing import Final

from vigil.errors import InvalidInput
from vigil.settings.tokens import Principal
from vigil.subjects import Scope, SessionKey, check_part
from vigil.teams import TEAM

from .http.problem import Problem

PRINCIPAL: Final = "vigil.principal"
"""Where the principal is in the ASGI scope."""


def own_session(text: str, principal: Principal) -> SessionKey:
    """Return the session that `text` names, if `principal` may reach it.

    Raises:
        InvalidInput: it's no session key, or a session of the cortex itself.
        Problem: 404, it's somebody else's; 403, a team's; whether it exists is not told.
    """
    return plain_session(readable_session(text, principal))


def readable_session(text: str, principal: Principal) -> SessionKey:
    """Return the session that `text` names, if `principal` may read it: also a worker's.

    Raises:
        InvalidInput: it's no session key.
        Problem: 404, it's somebody else's; 403, a team's; whether it exists is not told.
    """
    session = SessionKey.parse(text)
    if principal.may_reach(session.user, session.agent):
        return session
    if session.user in (TEAM, principal.user):
        raise not_of_team(session.agent)
    raise Problem(404, "there is no such session")


def plain_session(session: SessionKey) -> SessionKey:
    """Return `session` unless it's one of the cortex itself. Raises: InvalidInput."""
    if session.is_system:
        raise InvalidInput("threadId", "must not start with '_'; such threads are the agent's own")
    return session


def listed(principal: Principal, owner: str | None, field: str = "user") -> tuple[Scope, ...]:
    """Return whose things a list shows: the caller's and their teams', or an admin anybody's.

    Args:
        owner: a user or `team`, as the request names them in `field`; None: it names nobody.

    Raises:
        InvalidInput: that can't be a user.
        Problem: 403, it's somebody else, or a team and the caller is in none.
    """
    if owner is None:
        return principal.reach
    check_part(field, owner)
    if principal.is_admin:
        return (Scope("*", owner),)
    found = tuple(one for one in principal.reach if one.owner == owner)
    if not found:
        raise _not_theirs(owner, field)
    return found


def check_reach(principal: Principal, owner: str, agent: str, field: str) -> None:
    """Raises: Problem, 403: what is `owner`'s, named in `field`, isn't for the caller to reach."""
    if principal.may_reach(owner, agent):
        return
    is_of_team = owner in (TEAM, principal.user)
    raise not_of_team(agent) if is_of_team else _not_theirs(owner, field)


def not_of_team(agent: str) -> Problem:
    """Return what a caller is told who isn't in the agent's team, whether it has one or not."""
    where = f"{TEAM}:{agent}:THREAD"
    return Problem(403, f"only members of the team of {agent} may; its sessions are {where}")


def _not_theirs(owner: str, field: str) -> Problem:
    who = "a member of a team may name it" if owner == TEAM else "an admin may name another user"
    return Problem(403, f"only {who}", field=field)
