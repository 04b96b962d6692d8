"""JSON pointers: which value of a document counts. Pure. Source: RFC 6901."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ..errors import InvalidInput

POINTER_LENGTH_MAX: Final = 500
_decode: Final = msgspec.json.Decoder().decode


def parts_of(pointer: str) -> list[str]:
    """Take a pointer apart.

    Raises:
        InvalidInput: it is none.

    >>> parts_of("/a~1b/0/m~0n")
    ['a/b', '0', 'm~n']
    >>> parts_of("version")
    Traceback (most recent call last):
    vigil.errors.InvalidInput: pointer: 'version' must begin with /, as in /items/0/version
    """
    if not pointer:
        return []
    if not pointer.startswith("/"):
        reason = f"{pointer[:100]!r} must begin with /, as in /items/0/version"
        raise InvalidInput("pointer", reason)
    if len(pointer) > POINTER_LENGTH_MAX:
        raise InvalidInput("pointer", f"must have at most {POINTER_LENGTH_MAX} characters")
    found = pointer[1:].split("/")
    for one in found:
        if "~" in one.replace("~0", "").replace("~1", ""):
            raise InvalidInput("pointer", f"{pointer[:100]!r} may have ~ only as ~0 and ~1")
    return [one.replace("~1", "/").replace("~0", "~") for one in found]


def at_pointer(text: str, pointer: str) -> Any:
    """Return the value that a pointer leads to.

    Raises:
        InvalidInput: the text is no JSON, or it leads to nothing.

    >>> at_pointer('{"items": [{"version": 3}]}', "/items/0/version")
    3
    >>> at_pointer("{}", "/version")
    Traceback (most recent call last):
    vigil.errors.InvalidInput: pointer: '/version' leads to nothing in what was answered
    """
    try:
        value = _decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InvalidInput("pointer", "leads into what is no JSON") from error
    for part in parts_of(pointer):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and _is_index(part) and int(part) < len(value):
            value = value[int(part)]
        else:
            raise InvalidInput(
                "pointer", f"{pointer[:100]!r} leads to nothing in what was answered"
            )
    return value


def _is_index(part: str) -> bool:
    """Whether a part is a place in a list: no sign, and no zero before it."""
    return part.isascii() and part.isdigit() and len(part) < 10 and (part == "0" or part[0] != "0")
