"""Whether there is a conversation, and what is told of one that was or is being deleted."""

from __future__ import annotations

from vigil.marks import thread_mark
from vigil.subjects import SessionKey

from .http.problem import Problem, deleting
from .state.edge import Edge


async def is_there(edge: Edge, session: SessionKey) -> bool:
    """Whether anything of a session is stored."""
    return await edge.bus.get_next(session.stream, session.everything, 1) is not None


async def check_exists(edge: Edge, session: SessionKey) -> None:
    """Make sure of a conversation before an order goes to it, which would begin one.

    Raises: Problem, 404: nothing of it is stored; 410: its person deleted it.
    """
    if not await is_there(edge, session):
        await check_not_deleted(edge, session)
        raise Problem(404, "there is no such session")


async def check_not_deleted(edge: Edge, session: SessionKey) -> None:
    """Raises: Problem, 410: there was such a conversation, which its person deleted."""
    mark = await thread_mark.find(edge.bus, session)
    if mark is not None:
        at = f"{mark.asked_at:%Y-%m-%d %H:%M} UTC"
        raise Problem(410, f"the conversation {session} was deleted at {at}")


def shown(edge: Edge, session: SessionKey) -> SessionKey:
    """Return a session that may be shown. Raises: Problem, 410: it is being deleted."""
    if session in edge.switches.threads:
        raise deleting(str(session))
    return session
