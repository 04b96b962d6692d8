"""Routes that are found by what a path begins with are those that trying all in turn would find."""

from __future__ import annotations

import re
from typing import Any, Final, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.routing import BaseRoute, Match, Route, WebSocketRoute

from services.gateway.app import described, served
from services.gateway.by_path import ByPath, ServedRoute, made

ROUTES: Final = cast(list[ServedRoute], described().router.routes)
SERVED: Final = ByPath(served())
PARAMETER: Final = re.compile(r"\{[^}]*\}")
NAMES: Final = st.sampled_from(["a", "", "api", "console", "graph", "b/c", "ann:vigil:main", "%"])
METHODS: Final = st.sampled_from(["GET", "HEAD", "POST", "PATCH", "DELETE", "PUT"])


@st.composite
def paths(draw: st.DrawFn) -> str:
    """A path of the table with something for its parameters, perhaps longer or shorter."""
    pattern = draw(st.sampled_from(ROUTES)).path
    path = PARAMETER.sub(lambda _: draw(NAMES), pattern)
    cut = draw(st.sampled_from([0, 0, 0, 1, 2]))
    whole = path[: len(path) - cut] if cut else path
    return whole + draw(st.sampled_from(["", "", "", "/", "/a", "/a/b"]))


def in_turn(scope: dict[str, Any]) -> tuple[Match, BaseRoute | None]:
    tried = [(route.matches(scope)[0], route) for route in ROUTES]
    for wanted in (Match.FULL, Match.PARTIAL):
        for match, route in tried:
            if match is wanted:
                return match, route
    return Match.NONE, None


@given(paths(), METHODS, st.sampled_from(["http", "http", "websocket"]))
def test_the_same_route_answers(path: str, method: str, kind: str) -> None:
    scope = {"type": kind, "path": path, "method": method, "headers": []}
    match, found = SERVED.matches(scope)
    route = found.get("vigil.route")
    assert (match, None if route is None else made(route)) == in_turn(scope)


def test_what_begins_with_a_parameter_could_be_anything() -> None:
    async def nothing(_: object) -> None:
        raise AssertionError

    with pytest.raises(ValueError, match="begins with a parameter"):
        ByPath([Route("/{name}", nothing), WebSocketRoute("/ws", nothing)])
