"""What an answer of a server of Matrix means for a try. Pure.

Source: the Matrix specification, Client-Server API v1.16, and what Synapse 1.163 did.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ..answers import Answer, NotTaken, Taken, Unclear

TOKEN_ERRORS: Final = ("M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED")
WAIT_MS_MAX: Final = 10**12
"""Any number may come, also one that no clock goes to."""
REASON_LENGTH_MAX: Final = 200


class HomeserverReply(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer."""

    status: int
    data: Any
    """What the body is as JSON; None: it is none, as of a proxy."""
    retry_after_s: float = 0.0
    """By its header."""

    @property
    def is_ok(self) -> bool:
        return 200 <= self.status < 300 and isinstance(self.data, dict)

    @property
    def code(self) -> str:
        """Return the error's name; empty: it has none."""
        found = self.data.get("errcode") if isinstance(self.data, dict) else None
        return found if isinstance(found, str) else ""

    @property
    def is_token_refused(self) -> bool:
        return self.status == 401 or self.code in TOKEN_ERRORS

    @property
    def wait_s(self) -> float:
        """Return how long the server wants to be left alone; 0.0: it doesn't say."""
        found = self.data.get("retry_after_ms") if isinstance(self.data, dict) else None
        if isinstance(found, int | float) and not isinstance(found, bool):
            return min(max(found, 0), WAIT_MS_MAX) / 1000
        return self.retry_after_s

    @property
    def in_words(self) -> str:
        """Return what the server says of it, in a line."""
        said = self.data.get("error") if isinstance(self.data, dict) else None
        more = " ".join(said.split()) if isinstance(said, str) else ""
        words = " ".join(one for one in (str(self.status), self.code, more) if one)
        return words[:REASON_LENGTH_MAX]


def answer_of(reply: HomeserverReply) -> Answer:
    """Translate a whole answer.

    >>> answer_of(HomeserverReply(status=429, data={"retry_after_ms": 1500})).wait_s
    1.5
    >>> answer_of(HomeserverReply(status=502, data=None)).reason
    '502'
    """
    if reply.is_ok:
        return Taken(reason=f"{reply.status}")
    if reply.status == 429 or reply.code == "M_LIMIT_EXCEEDED":
        return NotTaken(reason=reply.in_words, status=reply.status, wait_s=reply.wait_s)
    if 400 <= reply.status < 500 and (reply.code or reply.is_token_refused):
        return NotTaken(reason=reply.in_words, status=reply.status, is_final=True)
    # A page of a proxy, or a server in trouble: the event may be stored.
    return Unclear(reason=reply.in_words, status=reply.status)
