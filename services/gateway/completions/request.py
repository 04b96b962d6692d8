"""What a request says that is new, and what was said before it. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from vigil.contracts import canonical
from vigil.errors import InvalidInput

from .wire import ChatTurn, CompletionRequest, ContentPart

TURNS_MAX: Final = 5_000
SEEN: Final = ("user", "assistant")
"""Roles that are the conversation."""
PASSED_OVER: Final = ("system", "developer")
_DATA: Final = re.compile(r"data:[\w.+/-]+;base64,(.*)", re.DOTALL)


class NewMessage(NamedTuple):
    """What is said, and after what."""

    text: str
    files: tuple[bytes, ...]
    past: str
    """Digest of all that was said before; empty: nothing was."""
    whole: str
    """Digest of that and of what is said."""


def asked(request: CompletionRequest) -> NewMessage:
    """Take a request apart.

    Raises:
        InvalidInput: it asks for what an agent hasn't got, or says nothing.
    """
    _check(request)
    before, new = _parted(request)
    if not new:
        raise InvalidInput("messages", "must end with a message of the role user")
    text = _joined(new)
    files = tuple(data for one in new for data in _files(one))
    return NewMessage(text, files, digest(before), digest((*before, ("user", text))))


def _check(request: CompletionRequest) -> None:
    if request.tools or request.functions:
        field = "tools" if request.tools else "functions"
        reason = "can't be lent to an agent: it has its own, and MCP servers give it more"
        raise InvalidInput(field, reason)
    if request.n not in (None, 1):
        raise InvalidInput("n", "must be 1")
    if (request.response_format or {}).get("type", "text") != "text":
        raise InvalidInput("response_format", "must be of type text")
    if len(request.messages) > TURNS_MAX:
        raise InvalidInput("messages", f"must be at most {TURNS_MAX}")
    for at, one in enumerate(request.messages):
        if one.role not in (*SEEN, *PASSED_OVER):
            raise InvalidInput(f"messages[{at}].role", f"{one.role[:40]!r} isn't taken here")


def digest(turns: Iterable[tuple[str, str]]) -> str:
    """Return what stands for a conversation; empty: there is none. Programs may change spaces, so
    these don't count.

    >>> digest([("user", "a  b")]) == digest([("user", " a b ")]), digest([])
    (True, '')
    """
    said = [[role, " ".join(text.split())] for role, text in turns]
    return hashlib.sha256(canonical(said)).hexdigest()[:32] if said else ""


def after(given: CompletionRequest, answer: str) -> str:
    """Return the digest of a conversation with the answer that it got."""
    before, new = _parted(given)
    return digest((*before, ("user", _joined(new)), ("assistant", answer)))


def _parted(request: CompletionRequest) -> tuple[list[tuple[str, str]], list[ChatTurn]]:
    """Return what was said before, as roles and words, and the messages that are new."""
    turns = [one for one in request.messages if one.role in SEEN]
    last = len(turns)
    while last and turns[last - 1].role == "user":
        last -= 1
    return [(one.role, _text(one)) for one in turns[:last]], turns[last:]


def _joined(new: Iterable[ChatTurn]) -> str:
    return "\n\n".join(filter(None, map(_text, new)))


def _text(turn: ChatTurn) -> str:
    if turn.content is None or isinstance(turn.content, str):
        return turn.content or ""
    return "\n\n".join(one.text for one in turn.content if one.type == "text" and one.text)


def _files(turn: ChatTurn) -> Sequence[bytes]:
    parts = turn.content if isinstance(turn.content, list) else []
    return [_file(one) for one in parts if one.type != "text"]


def _file(part: ContentPart) -> bytes:
    """Return the bytes of an image. Raises: InvalidInput: there are none."""
    if part.type != "image_url" or part.image_url is None:
        raise InvalidInput("messages", f"parts of type {part.type[:40]!r} aren't taken here")
    found = _DATA.fullmatch(part.image_url.url)
    if found is None:
        raise InvalidInput("image_url", "must be a data: URL in base64; nothing is fetched")
    try:
        return base64.b64decode(found[1], validate=True)
    except binascii.Error as error:
        raise InvalidInput("image_url", "is no base64") from error
