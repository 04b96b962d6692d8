"""Reading request bodies: never more than the limit, never deeper, and only what is known."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from vigil.contracts.arguments import renamed
from vigil.errors import InvalidInput

from .decide import TooLarge, complaint, is_too_deep
from .problem import Problem

T = TypeVar("T")
LENGTH: Final = b"content-length"
ENCODING: Final = b"content-encoding"
PLAIN: Final = (b"", b"identity")
NUL: Final = rb"\u0000"
"""The spelling of it in JSON."""


class ClientGone(Exception):
    """The client went away: nobody waits for an answer."""


def at_most(bytes_max: int) -> str:
    """Return what is wrong with what has more bytes."""
    return f"must have at most {bytes_max} bytes"


async def read(scope: Any, receive: Any, bytes_max: int) -> bytes:
    """Return the body of an ASGI request.

    Raises:
        TooLarge: it announces or has more than `bytes_max` bytes; the rest isn't kept.
        ClientGone: the connection was closed.
        Problem: 415, it is compressed: what isn't read can't be larger than it looks.
    """
    for name, value in scope["headers"]:
        if name == ENCODING and value.strip().lower() not in PLAIN:
            raise Problem(
                415,
                "send the body as it is: Content-Encoding isn't taken",
                headers={"Accept-Encoding": "identity"},
            )
        if name == LENGTH and (not value.isdigit() or int(value) > bytes_max):
            raise TooLarge("body", at_most(bytes_max))
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > bytes_max:
            raise TooLarge("body", at_most(bytes_max))
        if not message.get("more_body", False) and not chunks:
            return bytes(chunk)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


async def read_shallow(scope: Any, receive: Any, bytes_max: int, depth_max: int) -> bytes:
    """Return the body of an ASGI request that an SDK is to parse: as `read`, and nested no deeper.

    Raises:
        InvalidInput: it's nested deeper.
    """
    data = await read(scope, receive, bytes_max)
    if is_too_deep(data, depth_max):
        raise InvalidInput("body", f"is nested deeper than {depth_max} levels, or not JSON")
    return data


def replayed(data: bytes, then: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
    """Return what an SDK that reads the body itself receives: that which was read already, and
    after it what `then` has."""
    is_read = False

    async def receive() -> Any:
        nonlocal is_read
        if is_read:
            return await then()
        is_read = True
        return {"type": "http.request", "body": data, "more_body": False}

    return receive


def by_documented_names(data: bytes, names: Mapping[str, str]) -> bytes:
    """Return a JSON object with its fields under the names that are documented.

    What is no object stays as it is, for `decode` to refuse. Raises: InvalidInput: something is
    given by two names.
    """
    try:
        given = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return data
    if given.keys().isdisjoint(names):
        return data
    return msgspec.json.encode(renamed(given, names))


def decode(
    data: bytes, decoder: msgspec.json.Decoder[T], depth_max: int, *, may_have_nul: bool = False
) -> T:
    """Decode JSON that came from outside.

    Args:
        may_have_nul: whether texts are what others' programs gave, as it is.

    Raises:
        InvalidInput: naming the field and the reason.
    """
    # Decoded first: what is broken ends there at once, and costs nobody else a moment. The decoder
    # has a limit of its own, at the interpreter's recursion.
    try:
        decoded = decoder.decode(data)
    except UnicodeDecodeError as error:
        raise InvalidInput("body", "must be UTF-8") from error
    except RecursionError as error:
        raise _too_deep(depth_max) from error
    except msgspec.MsgspecError as error:
        raise InvalidInput(*complaint(str(error))) from error
    if is_too_deep(data, depth_max):
        raise _too_deep(depth_max)
    if NUL in data and not may_have_nul:
        _check_texts("", decoded)
    return decoded


def _check_texts(name: str, value: Any) -> None:
    """Refuse NUL in the texts that have a field or a place in a list, as the documents say; what
    is of any form may have it. Raises: InvalidInput, naming the field."""
    if isinstance(value, msgspec.Struct):
        for field in msgspec.structs.fields(value):
            if field.type is not Any:
                inner = f"{name}.{field.encode_name}" if name else field.encode_name
                _check_texts(inner, getattr(value, field.name))
    elif isinstance(value, list | tuple):
        for place, one in enumerate(value):
            _check_texts(f"{name}[{place}]", one)
    elif isinstance(value, str) and "\0" in value:
        raise InvalidInput(name, "must not contain NUL")


def _too_deep(depth_max: int) -> InvalidInput:
    return InvalidInput("body", f"is nested deeper than {depth_max} levels")
