"""`If-Match`: a change is made to the revision that its sender read, or refused with 412.

Who names none changes whatever is there: if something else came between our read and our write,
it's read and decided anew. Answers that hold something with a revision carry it as their `ETag`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Annotated, Final, TypeVar

from fastapi import Depends, Header, Response

from vigil.errors import InvalidInput, WrongLastSequence

from .http.problem import Problem, unavailable

T = TypeVar("T")

TRIES_MAX: Final = 20
"""Changes of others that may come between a read and a write."""

_TAG: Final = re.compile(r'"([0-9]{1,16})"', re.ASCII)


def parse(header: str | None) -> int | None:
    """Return the revision that a header names; None: whatever is there.

    >>> parse('"41"'), parse("*"), parse(None)
    (41, None, None)

    Raises:
        InvalidInput: it's no revision of ours.
    """
    if header is None or header.strip() == "*":
        return None
    found = _TAG.fullmatch(header.strip())
    if found is None:
        raise InvalidInput("If-Match", 'must be "REVISION", as the ETag had it, or *')
    return int(found[1])


async def _expected(
    if_match: Annotated[
        str | None,
        Header(
            description="The revision that was read, as its ETag had it; absent: whatever is there"
        ),
    ] = None,
) -> int | None:
    return parse(if_match)


Expected = Annotated[int | None, Depends(_expected)]
"""The revision that a request is about."""


def check(expected: int | None, found: int) -> None:
    """Refuse a change of what is no longer as it was read. Raises: Problem, 412."""
    if expected is not None and expected != found:
        raise _changed()


async def changed(expected: int | None, change: Callable[[], Awaitable[T]]) -> T:
    """Return what a change comes to.

    Args:
        change: reads, checks what it reads by `check`, and writes; may be repeated.

    Raises:
        Problem: 412, it isn't the expected revision any more; 503, whatever is read is changed by
            others at once; what `change` raises.
    """
    for _ in range(TRIES_MAX):
        try:
            return await change()
        except WrongLastSequence:
            if expected is not None:
                raise _changed() from None
    raise unavailable("others change it all the time; nothing was changed")


def _changed() -> Problem:
    return Problem(412, "it was changed since you read it; read it again", field="If-Match")


def tagged(answer: Response, revision: int) -> Response:
    """Say which revision an answer holds."""
    answer.headers["etag"] = f'"{revision}"'
    return answer
