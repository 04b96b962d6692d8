"""Exit codes: one table from kinds of failure to the number a script sees.

0    done
1    failed
2    wrong usage, or input that can't be accepted
3    not found, or not ready
4    not authenticated, or not allowed
5    conflict: somebody else is there, or came first
124  no answer in time
130  ended by Ctrl-C
"""

from __future__ import annotations

import errno
from typing import Final

from vigil.errors import (
    AlreadyExists,
    InvalidInput,
    NotFound,
    NotReady,
    OutcomeUnknown,
    Unavailable,
    VigilError,
    WrongLastSequence,
)
from vigil.local.runfile import AlreadyRunning
from vigil.sdk.client import ApiError

from . import INTERRUPTED

__all__ = [
    "AUTH",
    "CONFLICT",
    "FAILURE",
    "HELP",
    "INTERRUPTED",
    "NOT_READY",
    "OF_DISK",
    "OK",
    "TIMEOUT",
    "USAGE",
    "AlreadyExists",
    "NotReady",
    "Timeout",
    "code_of",
]
OK: Final = 0
FAILURE: Final = 1
USAGE: Final = 2
NOT_READY: Final = 3
AUTH: Final = 4
CONFLICT: Final = 5
TIMEOUT: Final = 124

HELP: Final = (
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found or not ready, 4 not allowed, "
    "5 conflict, 124 no answer in time, 130 Ctrl-C. Data goes to stdout, messages to stderr."
)

_STATUSES: Final = {
    FAILURE: (405, 429),
    USAGE: (400, 413, 415, 422),
    NOT_READY: (404, 502, 503),
    AUTH: (401, 403),
    CONFLICT: (409, 412),
    TIMEOUT: (408, 504),
}
"""Of an answer of the API, by exit code."""
_OF_STATUS: Final = {status: code for code, all_ in _STATUSES.items() for status in all_}


OF_DISK: Final = frozenset(
    {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.EIO}
)
"""What a disk refuses, and a person can mend: a sentence says it, and no traceback."""


class Timeout(VigilError):
    """What was waited for did not come in time."""


def code_of(error: VigilError) -> int:
    """Map an error to its exit code.

    >>> code_of(NotReady("nothing runs"))
    3
    """
    match error:
        case ApiError():
            return _OF_STATUS.get(error.status, FAILURE)
        case InvalidInput():
            return USAGE
        case Timeout() | OutcomeUnknown():
            return TIMEOUT
        case NotReady() | NotFound() | Unavailable():
            return NOT_READY
        case AlreadyRunning() | AlreadyExists() | WrongLastSequence():
            return CONFLICT
        case _:
            return FAILURE
