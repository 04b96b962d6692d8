"""Errors as a client sees them: problem+json (RFC 9457), never a stack trace.

One table maps what our code raises to a status; whatever isn't in it is a 500 that says
nothing about the inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec

from vigil.bus.bus import BusError
from vigil.errors import InvalidInput, Unavailable

from .decide import TooLarge

MEDIA_TYPE: Final = "application/problem+json"
RETRY_LATER_S: Final = 1
_SENTENCES: Final = ("there is ", "nothing ", "several ")
"""How a reason begins that names its subject itself."""
_TITLES: Final = {413: "Request Entity Too Large", 422: "Unprocessable Entity"}


def title_of(status: int) -> str:
    """Return what a status is called, by whatever Python: 3.13 calls some otherwise, and clients
    know problems by it.

    >>> title_of(404), title_of(422)
    ('Not Found', 'Unprocessable Entity')
    """
    return _TITLES.get(status) or HTTPStatus(status).phrase


def name_of(status: int) -> str:
    """Return the last part of a problem's type.

    >>> name_of(404), name_of(422)
    ('not-found', 'unprocessable-entity')
    """
    return title_of(status).lower().replace(" ", "-")


def type_of(status: int) -> str:
    """Return the type of the problem of a status.

    >>> type_of(404)
    'urn:vigil:problem:not-found'
    """
    return f"urn:vigil:problem:{name_of(status)}"


class ProblemBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong. `field` names the part of the input that is to blame."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None


class Problem(Exception):
    """An answer that is an error."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.field = field
        self.headers = dict(headers or {})

    def body(self) -> bytes:
        """Return the problem as JSON."""
        title = title_of(self.status)
        return msgspec.json.encode(
            ProblemBody(
                type=type_of(self.status),
                title=title,
                status=self.status,
                detail=self.detail,
                field=self.field,
            )
        )


def unauthorized(detail: str) -> Problem:
    """The caller didn't prove who they are."""
    return Problem(401, detail, headers={"WWW-Authenticate": 'Bearer realm="vigil"'})


def too_many(detail: str, wait_s: float) -> Problem:
    """The caller should come back after `wait_s` seconds."""
    return Problem(429, detail, headers={"Retry-After": str(max(1, int(wait_s + 0.999)))})


def erasing() -> Problem:
    """Everything of that person is being erased: nothing new may come."""
    return Problem(403, "this person is being erased; nothing of theirs is taken in or shown")


def deleting(session: str) -> Problem:
    """That conversation is being deleted: nothing of it is shown, and nothing new may come."""
    return Problem(410, f"the conversation {session} is being deleted")


def unavailable(detail: str) -> Problem:
    """We can't now; the same request may work in a moment."""
    return Problem(503, detail, headers={"Retry-After": str(RETRY_LATER_S)})


def _said(error: InvalidInput) -> str:
    """Say what is wrong in a sentence: `name must not be empty`; a reason that is a sentence of its
    own stands behind a colon."""
    colon = ":" * error.reason.startswith(_SENTENCES)
    return f"{error.field}{colon} {error.reason}"


def of_error(error: Exception) -> Problem | None:
    """Translate an error that our code raises on purpose; None for a fault of ours."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, TooLarge):
        return Problem(413, f"{error.field} {error.reason}", field=error.field)
    if isinstance(error, InvalidInput):
        return Problem(422, _said(error), field=error.field)
    if isinstance(error, Unavailable | BusError):
        return unavailable("the broker can't be reached or refused; try again")
    return None


async def send_problem(send: Any, problem: Problem, *, is_websocket: bool = False) -> None:
    """Answer an ASGI request with `problem`; a WebSocket must not be accepted yet."""
    kind = "websocket.http.response" if is_websocket else "http.response"
    body = problem.body()
    headers = [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        *((name.lower().encode(), value.encode()) for name, value in problem.headers.items()),
    ]
    await send({"type": f"{kind}.start", "status": problem.status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})


def refusal_of(error: Exception) -> str:
    """Return why an event was not stored, in one of three words."""
    if isinstance(error, InvalidInput):
        return "invalid"
    return "busy" if isinstance(error, Problem) and error.status == 429 else "unavailable"
