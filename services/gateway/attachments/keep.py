"""Files that a message names: kept for good from then on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from vigil.attachments import store
from vigil.contracts.events import Attachment
from vigil.errors import InvalidInput

from ..edge import Edge
from ..http.problem import Problem, erasing

ATTACHMENTS_MAX: Final = 10
"""Of a message."""


async def kept(edge: Edge, user: str, hashes: Sequence[str]) -> tuple[Attachment, ...]:
    """Keep what a message names for good -> what is known of it.

    Raises:
        InvalidInput: there are too many, or one twice.
        Problem: 404, one isn't the person's; 403, the person is being erased.
    """
    if not hashes:
        return ()
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
            about = await store.keep(edge.bus, user, one)
        except InvalidInput as error:
            raise InvalidInput("attachments", error.reason) from None
        if about is None:
            raise unknown("attachments")
        found.append(about)
    return tuple(found)


def unknown(field: str) -> Problem:
    """There is none of that hash among the person's; there may be one of somebody else's."""
    return Problem(404, "you have no attachment of that hash; upload it", field=field)
