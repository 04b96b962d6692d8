"""Why something outside couldn't be reached or used, in words and without a number. Pure.

What a library says of it ("[Errno 111] Connection refused", a class, several addresses) is for who
wrote the library. Where it was, and what was to be done there, says whoever tells of it.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from typing import Final

from ..errors import VigilError

_CAUSES_MAX: Final = 10
_NUMBER: Final = re.compile(r"\[Errno (-?\d+)\] ?")
_LATE: Final = "it did not answer in time"
_WORDS: Final = {
    errno.ECONNREFUSED: "nothing listens there",
    errno.ECONNRESET: "it broke the connection off",
    errno.ECONNABORTED: "the connection was broken off",
    errno.EPIPE: "it broke the connection off",
    errno.EHOSTUNREACH: "no way leads there",
    errno.ENETUNREACH: "no way leads there",
    errno.ENETDOWN: "there is no network",
    errno.ETIMEDOUT: _LATE,
    errno.ENOENT: "it isn't there",
    errno.EACCES: "that isn't allowed",
    errno.EPERM: "that isn't allowed",
    errno.EISDIR: "it is a folder",
    errno.ENOTDIR: "a part of its path is no folder",
    errno.ENOSPC: "the disk is full",
    errno.EROFS: "it can only be read",
    errno.EADDRINUSE: "something else has it",
    errno.EADDRNOTAVAIL: "this machine has no such address",
    errno.EMFILE: "too many files are open",
    errno.ENFILE: "too many files are open",
}
_NO_NAME: Final = "nobody knows that name"
_OF_NAMES: Final = {-2: _NO_NAME, -5: _NO_NAME, -3: "the name can't be looked up now"}
"""What the resolver of names answers (EAI_NONAME, EAI_NODATA, EAI_AGAIN of Linux)."""


def reason_of(error: BaseException) -> str:
    """Say why, as far as the error or one that led to it tells; an error of ours says it itself.

    >>> reason_of(ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"))
    'nothing listens there'
    >>> reason_of(OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 9)"))
    'nothing listens there'
    >>> reason_of(TimeoutError()), reason_of(ValueError("it's no number")), reason_of(KeyError())
    ('it did not answer in time', "it's no number", 'KeyError')
    """
    if isinstance(error, VigilError):
        return str(error)
    return known_reason(error) or _NUMBER.sub("", str(error)).strip() or type(error).__name__


def known_reason(error: BaseException) -> str:
    """Say why, if an error of the system is what led to it; empty: none is."""
    return next(filter(None, map(_of_system, _causes(error))), "")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, and those that it came of; libraries name these in ways of their own."""
    found: BaseException | None = error
    for _ in range(_CAUSES_MAX):
        if found is None:
            return
        yield found
        told = (getattr(found, name, None) for name in ("reason", "os_error"))
        inner = next((one for one in told if isinstance(one, BaseException)), None)
        found = inner or found.__cause__ or found.__context__


def _of_system(error: BaseException) -> str:
    if not isinstance(error, OSError):
        return ""
    if said := getattr(error, "verify_message", ""):
        return f"its certificate can't be trusted: {said}"
    number = error.errno
    if number is None and (seen := _NUMBER.search(str(error))):
        number = int(seen[1])
    if number is None:
        return _LATE if isinstance(error, TimeoutError) else ""
    if number < 0:  # of the resolver of names
        return _OF_NAMES.get(number, "the name can't be looked up")
    plain = error.strerror or _NUMBER.sub("", str(error))
    return _WORDS.get(number) or plain[:1].lower() + plain[1:]
