"""Failures as HTTP answers: whatever is raised, a problem is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import structlog
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from vigil.bus.bus import BusError
from vigil.errors import InvalidInput, Unavailable

from ..by_path import ServedRoute, made
from .body import ClientGone
from .problem import MEDIA_TYPE, Problem, of_error

log = structlog.get_logger("vigil.gateway")

EXPECTED: Final = (ClientGone, Problem, InvalidInput, Unavailable, BusError)
"""What our code raises on purpose; all else is a fault, which is answered and logged."""


def _response(problem: Problem) -> Response:
    headers = {"cache-control": "no-store"} | problem.headers
    return Response(problem.body(), problem.status, headers, MEDIA_TYPE)


async def on_error(request: Request, error: Exception) -> Response:
    if isinstance(error, ClientGone):
        return Response(status_code=400)  # written to nobody
    problem = of_error(error)
    if problem is None:
        return _response(Problem(500, "something went wrong here; it was logged"))
    if problem.status >= 500:
        log.warning("unavailable", action="gateway.unavailable", error=str(error))
    return _response(problem)


async def _on_http_error(request: Request, error: Exception) -> Response:
    """Answer for the router: no such path, or not with that method."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for it
    if error.status_code != 405:
        return _response(Problem(error.status_code, str(error.detail)))
    (served,) = request.app.router.routes
    allowed = ", ".join(_methods(served.among(request.scope["path"]), request.scope))
    problem = Problem(405, f"this path takes {allowed}", headers={"Allow": allowed})
    return _response(problem)


def _methods(routes: Sequence[ServedRoute], scope: Any) -> list[str]:
    """Return what a path takes: `/api/memories/graph` isn't a memory of that name."""
    matching = (made(route) for route in routes if route.matches(scope)[0] is not Match.NONE)
    found = [
        route
        for route in matching
        if isinstance(route, Route) and route.endpoint is not refuse_method
    ]
    fewest = min((len(route.param_convertors) for route in found), default=0)
    closest = (route.methods or set() for route in found if len(route.param_convertors) == fewest)
    return sorted(set().union(*closest))


async def refuse_method(request: Request) -> Response:
    raise HTTPException(405)


async def _on_bad_parameter(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for it
    first = error.errors()[0]
    # Of several of a parameter, a number follows its name.
    field = next(str(part) for part in reversed(first["loc"]) if isinstance(part, str))
    return _response(Problem(422, f"{field}: {first['msg']}", field=field))


HANDLERS: Final[dict[int | type[Exception], Any]] = {
    HTTPException: _on_http_error,
    RequestValidationError: _on_bad_parameter,
    **dict.fromkeys((Exception, *EXPECTED), on_error),
}
