"""Files that a message names: kept for as long as the log, once it is stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from vigil.attachments import store
from vigil.contracts import Attachment
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey

from ..http.problem import Problem, erasing
from ..http.wire import Accepted
from ..state.edge import Edge

ATTACHMENTS_MAX: Final = 10
"""Of a message."""


async def accepted(
    edge: Edge,
    user: str,
    session: SessionKey,
    hashes: Sequence[str],
    accept: Callable[[tuple[Attachment, ...]], Awaitable[Accepted]],
) -> Accepted:
    """Have `accept` store a message with the files that it names, and keep those.

    Raises:
        InvalidInput: there are too many, or one twice.
        Problem: 404, one isn't the person's; 403, the person is being erased.
    """
    if not hashes:
        return await accept(())
    files = await _named(edge, user, hashes)
    place = session.stream, session.in_user
    answer, are_kept = await store.named(edge.bus, user, files, place, lambda: accept(files))
    if not are_kept:
        edge.unkept.wake()  # the message is stored: whoever sent it needn't send it again
    return answer


async def _named(edge: Edge, user: str, hashes: Sequence[str]) -> tuple[Attachment, ...]:
    if edge.switches.is_erasing(user):
        raise erasing()
    if len(hashes) > ATTACHMENTS_MAX:
        reason = f"must be at most {ATTACHMENTS_MAX}, are {len(hashes)}"
        raise InvalidInput("attachments", reason)
    if len(set(hashes)) < len(hashes):
        raise InvalidInput("attachments", "must not name a file twice")
    found = []
    for one in hashes:
        try:
            about = await store.find(edge.bus, user, one)
        except InvalidInput as error:
            raise InvalidInput("attachments", error.reason) from None
        if about is None or await store.read(edge.bus, user, about) is None:
            raise unknown("attachments")
        found.append(about)
    return tuple(found)


def unknown(field: str) -> Problem:
    """There is none of that hash among the person's; there may be one of somebody else's."""
    return Problem(404, "you have no attachment of that hash; upload it", field=field)
