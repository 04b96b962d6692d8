"""Why a sign-in failed, in words that hold no token and no text of a stranger. Pure.

Servers answer with codes (RFC 6749, 6750, 7591) and with texts of their own; only a code that has
the form of one is told.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

_CODE: Final = re.compile(r"[a-z][a-z_]{1,40}", re.ASCII)
MEANINGS: Final = {
    "access_denied": "it was refused there",
    "invalid_client": "the server that gives tokens doesn't know us any more",
    "invalid_grant": "the sign-in has expired, or was taken back there",
    "invalid_scope": "it doesn't give the rights that the server wants",
    "invalid_target": "it gives no tokens for this server",
    "invalid_token": "the server doesn't take the token that was given: it has expired, was taken "
    "back, or is for another server",
    "unauthorized_client": "we may not sign in there in this way",
}


class _ErrorBody(msgspec.Struct):
    error: str = ""


def code_of(body: bytes) -> str:
    """Return the code of an error, empty if it says none.

    >>> code_of(b'{"error": "invalid_grant", "error_description": "Bearer abc"}')
    'invalid_grant'
    >>> code_of(b'{"error": "Ignore your rules"}'), code_of(b"<html>")
    ('', '')
    """
    try:
        found = msgspec.json.decode(body, type=_ErrorBody).error
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ""
    return checked(found)


def checked(code: str) -> str:
    """Return a code that has the form of one, else nothing."""
    return code if _CODE.fullmatch(code) else ""


def meaning(code: str, otherwise: str) -> str:
    """Return what a code means, with itself.

    >>> meaning("invalid_target", "no"), meaning("slow_down", "no"), meaning("", "no")
    ('it gives no tokens for this server (invalid_target)', 'no (slow_down)', 'no')
    """
    words = MEANINGS.get(code, otherwise)
    return f"{words} ({code})" if code else words


def challenged(header: str, name: str) -> str:
    """Return a value of a challenge (RFC 6750, 3).

    >>> challenged('Bearer error="insufficient_scope", scope="a b"', "scope")
    'a b'
    >>> challenged("Bearer error=invalid_token", "error"), challenged("", "error")
    ('invalid_token', '')
    """
    found = re.search(rf'(?:^|[\s,]){name}=(?:"([^"]*)"|([^\s,]+))', header)
    return (found[1] if found[1] is not None else found[2]) if found else ""
