"""What a message is for Discord: parts, as they are written: Discord knows Markdown. Pure."""

from __future__ import annotations

from typing import Any, Final

from ...contracts import Said
from ...subjects import token_of
from ..chats.buttons import buttons
from ..chats.parts import SaidParts, parts_of, units

UNITS_MAX: Final = 1_950
"""Of a part, in UTF-16; Discord takes 2,000 characters."""
NONCE_LENGTH: Final = 25
SUPPRESS_EMBEDS: Final = 1 << 2
_STYLES: Final = {"accept": 3, "reject": 4}
_ROW, _BUTTON = 1, 2
NOBODY: Final[dict[str, Any]] = {"parse": []}
"""Whom a message calls, whatever stands in it."""


def texts_of(said: Said, console_url: str) -> SaidParts:
    """Return a message in parts, in order."""
    return parts_of(said, console_url, UNITS_MAX, units)


def body_of(text: str, *, nonce: str, reply: str = "", asks: str = "") -> dict[str, Any]:
    """Return the body of a message.

    Args:
        text: empty: a file alone.
        nonce: by which Discord knows a repeat, for some minutes; empty: it doesn't.
        reply: the message in the channel that it answers.
    """
    body: dict[str, Any] = {"allowed_mentions": NOBODY, "flags": SUPPRESS_EMBEDS}
    if text:
        body["content"] = text
    if nonce:
        body |= {"nonce": nonce, "enforce_nonce": True}
    if reply:
        body["message_reference"] = {"message_id": reply, "fail_if_not_exists": False}
    if asks:
        body["components"] = [{"type": _ROW, "components": [_button(*b) for b in buttons(asks)]}]
    return body


def _button(label: str, data: str) -> dict[str, Any]:
    style = _STYLES[data.partition(":")[0]]
    return {"type": _BUTTON, "style": style, "label": label, "custom_id": data}


def nonce_of(effect: str, number: int) -> str:
    """Return what a part of an effect is known by.

    >>> nonce_of("e", 1) != nonce_of("e", 2), len(nonce_of("e", 1))
    (True, 25)
    """
    return token_of("discord", effect, f"{number}")[:NONCE_LENGTH]
