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
USER: Final = "user"
SEEN: Final = (USER, "assistant")
"""Roles that are the conversation."""
PASSED_OVER: Final = ("system", "developer")
NO_TOOLS: Final = "can't be lent to an agent: it has its own, and MCP servers give it more"
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
    return new_message(request.messages, field="messages")


def new_message(turns: Sequence[ChatTurn], *, field: str, past: str = "") -> NewMessage:
    """Tell what is new in a conversation from what was said before.

    Args:
        field: of the request, for the error.
        past: digest of what was said before that; empty: nothing was.

    Raises:
        InvalidInput: nothing is new, or there is too much.
    """
    if len(turns) > TURNS_MAX:
        raise InvalidInput(field, f"must be at most {TURNS_MAX}")
    for at, one in enumerate(turns):
        if one.role not in (*SEEN, *PASSED_OVER):
            raise InvalidInput(f"{field}[{at}].role", f"{one.role[:40]!r} isn't taken here")
    before, new = _parted(turns)
    if not new:
        raise InvalidInput(field, "must end with a message of the role user")
    text = _joined(new)
    files = tuple(data for one in new for data in _files(one, field))
    past = digest(before, past)
    return NewMessage(text, files, past, digest(((USER, text),), past))


def _check(request: CompletionRequest) -> None:
    if request.tools or request.functions:
        raise InvalidInput("tools" if request.tools else "functions", NO_TOOLS)
    if request.n not in (None, 1):
        raise InvalidInput("n", "must be 1")
    if (request.response_format or {}).get("type", "text") != "text":
        raise InvalidInput("response_format", "must be of type text")


def digest(turns: Iterable[tuple[str, str]], past: str = "") -> str:
    """Return what stands for a conversation; empty: there is none. Programs may change spaces, so
    these don't count.

    Args:
        past: of what was said before.

    >>> digest([("user", "a  b")]) == digest([("user", " a b ")]), digest([])
    (True, '')
    """
    for role, text in turns:
        said = canonical([past, role, " ".join(text.split())])
        past = hashlib.sha256(said).hexdigest()[:32]
    return past


def after(asked: NewMessage, answer: str) -> str:
    """Return the digest of a conversation with the answer that it got."""
    return digest((("assistant", answer),), asked.whole)


def _parted(turns: Sequence[ChatTurn]) -> tuple[list[tuple[str, str]], list[ChatTurn]]:
    """Return what was said before, as roles and words, and the messages that are new."""
    said = [one for one in turns if one.role in SEEN]
    last = len(said)
    while last and said[last - 1].role == USER:
        last -= 1
    return [(one.role, _text(one)) for one in said[:last]], said[last:]


def _joined(new: Iterable[ChatTurn]) -> str:
    return "\n\n".join(filter(None, map(_text, new)))


def _text(turn: ChatTurn) -> str:
    if turn.content is None or isinstance(turn.content, str):
        return turn.content or ""
    return "\n\n".join(one.text for one in turn.content if one.type == "text" and one.text)


def _files(turn: ChatTurn, field: str) -> Sequence[bytes]:
    parts = turn.content if isinstance(turn.content, list) else []
    return [_file(one, field) for one in parts if one.type != "text"]


def _file(part: ContentPart, field: str) -> bytes:
    """Return the bytes of an image. Raises: InvalidInput: there are none."""
    if part.type != "image_url" or part.image_url is None:
        raise InvalidInput(field, f"parts of type {part.type[:40]!r} aren't taken here")
    found = _DATA.fullmatch(part.image_url.url)
    if found is None:
        raise InvalidInput("image_url", "must be a data: URL in base64; nothing is fetched")
    try:
        return base64.b64decode(found[1], validate=True)
    except binascii.Error as error:
        raise InvalidInput("image_url", "is no base64") from error
