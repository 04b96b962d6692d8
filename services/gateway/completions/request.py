"""What a request says that is new, and what was said before it. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from vigil.contracts import canonical
from vigil.contracts.calls.caller import CallerTools
from vigil.errors import InvalidInput

from .lent import GivenResult, GivenTool, caller_tools
from .wire import ChatFunction, ChatTurn, CompletionRequest, ContentPart

TURNS_MAX: Final = 5_000
USER: Final = "user"
SEEN: Final = (USER, "assistant")
"""Roles that are the conversation."""
PASSED_OVER: Final = ("system", "developer")
TOOL: Final = "tool"
"""The role of what a program tells of a call."""
_DATA: Final = re.compile(r"data:[\w.+/-]+;base64,(.*)", re.DOTALL)


class NewMessage(NamedTuple):
    """What is said, and after what."""

    text: str
    files: tuple[bytes, ...]
    past: str
    """Digest of all that was said before; empty: nothing was."""
    whole: str
    """Digest of that and of what is said; of results alone of what was said before."""
    tools: CallerTools | None = None
    results: tuple[GivenResult, ...] = ()
    """Of calls that the answer before asked for."""

    @property
    def request(self) -> str:
        """Return what stands for the request: the same words with other tools are another."""
        if self.tools is None:
            return self.whole
        return hashlib.sha256(canonical([self.whole, self.tools])).hexdigest()[:32]


def asked(request: CompletionRequest) -> NewMessage:
    """Take a request apart.

    Raises:
        InvalidInput: it asks for what an agent hasn't got, or says nothing.
    """
    _check(request)
    given = [
        GivenTool(f"tools[{at}].function", one.type, f.name, f.description, f.parameters)
        for at, one in enumerate(request.tools or ())
        for f in [one.function or ChatFunction(name="")]
    ]
    tools = caller_tools(given, request.tool_choice, is_parallel=request.parallel_tool_calls)
    new = new_message(request.messages, field="messages", call_field="tool_call_id")
    return new._replace(tools=tools)


def new_message(
    turns: Sequence[ChatTurn], *, field: str, call_field: str, past: str = ""
) -> NewMessage:
    """Tell what is new in a conversation from what was said before.

    Args:
        field: of the request, for the error.
        call_field: the field of a result that names its call.
        past: digest of what was said before that; empty: nothing was.

    Raises:
        InvalidInput: nothing is new, or there is too much.
    """
    if len(turns) > TURNS_MAX:
        raise InvalidInput(field, f"must be at most {TURNS_MAX}")
    for at, one in enumerate(turns):
        if one.role not in (*SEEN, TOOL, *PASSED_OVER):
            raise InvalidInput(f"{field}[{at}].role", f"{one.role[:40]!r} isn't taken here")
    before, new = _parted(turns)
    are_new = {id(one) for one in new}
    results = tuple(
        GivenResult(f"{field}[{at}].{call_field}", one.tool_call_id or "", _result(one, field))
        for at, one in enumerate(turns)
        if one.role == TOOL and id(one) in are_new
    )
    new = [one for one in new if one.role == USER]
    if not new and not results:
        raise InvalidInput(field, "must end with a message of the role user, or of the role tool")
    text = _joined(new)
    files = tuple(data for one in new for data in _files(one, field))
    past = digest(before, past)
    whole = digest(((USER, text),), past) if new else past
    return NewMessage(text, files, past, whole, results=results)


def _check(request: CompletionRequest) -> None:
    if request.functions:
        raise InvalidInput("functions", "aren't taken here: name them as tools")
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
    """Return the digest of a conversation with the answer that it got; of calls alone there is
    nothing to add."""
    if not answer.strip():
        return asked.whole
    return digest((("assistant", answer),), asked.whole)


def _parted(turns: Sequence[ChatTurn]) -> tuple[list[tuple[str, str]], list[ChatTurn]]:
    """Return what was said before, as roles and words, and the messages that are new.

    Calls and their results are no part of what was said: programs may leave them out later."""
    said = [one for one in turns if one.role in (*SEEN, TOOL)]
    last = len(said)
    while last and said[last - 1].role in (USER, TOOL):
        last -= 1
    spoken = [(one.role, _text(one)) for one in said[:last] if _is_spoken(one)]
    return spoken, said[last:]


def _is_spoken(turn: ChatTurn) -> bool:
    """Whether a message has words of the conversation; one of calls alone has none."""
    return turn.role == USER or (turn.role in SEEN and bool(_text(turn).strip()))


def _result(turn: ChatTurn, field: str) -> str:
    """Return what came of a call: NUL as a question mark, as of commands of our own. Raises:
    InvalidInput: it isn't text."""
    parts = turn.content if isinstance(turn.content, list) else []
    for one in parts:
        if one.type != "text":
            raise InvalidInput(field, f"a result of type {one.type[:40]!r} isn't taken here")
    return _text(turn).replace("\0", "?")


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
