"""Whether a server has refused a call because it no longer knows our session. Pure.

A session ends when its server is started anew, or has waited long enough. By the specification the
answer is HTTP 404 then, and a new session has to be begun. Many say it otherwise: the SDK's own
examples answer 400 with a sentence, and 404 stands for a method that isn't there, too.

Source: MCP 2025-11-25, Streamable HTTP, Session Management.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

REFUSAL_BYTES_MAX: Final = 64 * 1024
"""Of a refusal that is looked at."""
SESSION_ENDED: Final = "its session ended"
METHOD_NOT_FOUND: Final = -32601
_NO_SESSION: Final = re.compile(
    r"(no valid|invalid|unknown|expired|missing) session|not initialized"
    r"|session( id)? (is )?(not found|unknown|invalid|expired|terminated|has been terminated)",
    re.IGNORECASE,
)


class _Error(msgspec.Struct):
    code: int
    message: str = ""


class _RefusedBody(msgspec.Struct):
    error: _Error


def is_session_gone(status: int, body: bytes) -> bool:
    """Return whether a request of a session was refused because there is no such session.

    >>> is_session_gone(404, b"")
    True
    >>> is_session_gone(404, b'{"error": {"code": -32601, "message": "Method not found"}}')
    False
    >>> is_session_gone(400, b'{"error": {"code": -32000, "message": "No valid session ID"}}')
    True
    >>> is_session_gone(400, b'{"error": {"code": -32602, "message": "session is required"}}')
    False
    """
    try:
        told = msgspec.json.decode(body, type=_RefusedBody).error
    except msgspec.DecodeError:
        return status == 404
    if status == 404:
        return told.code != METHOD_NOT_FOUND
    return _NO_SESSION.search(told.message) is not None
