"""Who may reach what, decided once for all routes.

A session of somebody else's is answered as if it weren't there (404); who names another user in a
field is told so (403), as the user may be no secret and the field is the mistake.
"""

from __future__ import annotations

from vigil.errors import InvalidInput
from vigil.settings.tokens import Principal
from vigil.subjects import SessionKey, check_part

from .http.problem import Problem


def own_session(text: str, principal: Principal) -> SessionKey:
    """Return the session that `text` names, if `principal` may reach it.

    Raises:
        InvalidInput: it's no session key, or a session of the cortex itself.
        Problem: 404, it's somebody else's; whether it exists is not told.
    """
    return plain_session(readable_session(text, principal))


def readable_session(text: str, principal: Principal) -> SessionKey:
    """Return the session that `text` names, if `principal` may read it: also a worker's.

    Raises:
        InvalidInput: it's no session key.
        Problem: 404, it's somebody else's; whether it exists is not told.
    """
    session = SessionKey.parse(text)
    if not principal.may_reach(session.user):
        raise Problem(404, "there is no such session")
    return session


def plain_session(session: SessionKey) -> SessionKey:
    """Return `session` unless it's one of the cortex itself. Raises: InvalidInput."""
    if session.is_system:
        raise InvalidInput("threadId", "must not start with '_'; such threads are the agent's own")
    return session


def listed_user(principal: Principal, user: str | None, field: str = "user") -> str | None:
    """Return whose things a list shows; None: everybody's, which only an admin gets.

    Args:
        user: as the request names them in `field`; None: it names nobody.

    Raises:
        InvalidInput: that can't be a user.
        Problem: 403, it's somebody else.
    """
    if user is None:
        return None if principal.is_admin else principal.user
    check_part(field, user)
    check_reach(principal, user, field)
    return user


def check_reach(principal: Principal, user: str, field: str) -> None:
    """Raises: Problem, 403: `user`, named in `field`, is somebody else's and no admin asks."""
    if not principal.may_reach(user):
        raise Problem(403, "only an admin may name another user", field=field)
