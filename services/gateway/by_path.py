"""Routes, found by what their paths begin with."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Final

from starlette.routing import BaseRoute, Match, Route, WebSocketRoute, compile_path


class LateRoute(BaseRoute):
    """A route that is made when somebody first asks for its path.

    FastAPI looks at a handler for as long as many of them take to answer: all of them together are
    a sixth of what the gateway's start costs.
    """

    def __init__(self, path: str, make: Callable[[], Route]) -> None:
        self.path = path
        self._make = make

    @cached_property
    def made(self) -> Route:
        return self._make()

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return compile_path(self.path)[0]

    def matches(self, scope: Any) -> tuple[Match, Any]:
        if not scope.get("root_path") and not self._pattern.match(scope["path"]):
            return Match.NONE, {}
        return self.made.matches(scope)

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        await self.made.handle(scope, receive, send)


ServedRoute = Route | WebSocketRoute | LateRoute


def made(route: ServedRoute) -> Route | WebSocketRoute:
    """Return a route itself, if it is one that is made late."""
    return route.made if isinstance(route, LateRoute) else route


_CHOSEN: Final = "vigil.route"
_ANY: Final = "*"


class ByPath(BaseRoute):
    """Many routes as one: the first that matches a request, as if they were tried in turn.

    Trying them costs as much as what most of them answer, and a page of the console is made of
    twenty answers.
    """

    def __init__(self, routes: Iterable[ServedRoute]) -> None:
        """Raises: ValueError, a path begins with a parameter."""
        self._all = tuple(routes)
        by_first: defaultdict[str, list[tuple[str, ServedRoute]]] = defaultdict(list)
        for one in self._all:
            first, second = _start_of(one.path)
            by_first[first].append((second, one))
        if _ANY in by_first:
            raise ValueError("routes: a path begins with a parameter")
        self._by_start = {
            (first, start): tuple(one for second, one in of_first if second in (start, _ANY))
            for first, of_first in by_first.items()
            for start in {second for second, _ in of_first}
        }

    def among(self, path: str) -> Sequence[ServedRoute]:
        """Return the routes that may be meant by a path, in their order."""
        first, _, rest = path[1:].partition("/")
        found = self._by_start.get((first, rest.partition("/")[0]))
        return self._by_start.get((first, _ANY), ()) if found is None else found

    def matches(self, scope: Any) -> tuple[Match, Any]:
        partly: tuple[Match, Any] = (Match.NONE, {})
        for route in self._all if scope.get("root_path") else self.among(scope["path"]):
            match, found = route.matches(scope)
            if match is Match.FULL:
                return match, {**found, _CHOSEN: route}
            if match is Match.PARTIAL and partly[0] is Match.NONE:
                partly = match, {**found, _CHOSEN: route}
        return partly

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        route: ServedRoute = scope[_CHOSEN]
        await route.handle(scope, receive, send)


def _start_of(pattern: str) -> tuple[str, str]:
    """Return the first two segments of a path; a parameter is any.

    >>> _start_of("/api/sessions/{key}"), _start_of("/hooks/{name}"), _start_of("/healthz")
    (('api', 'sessions'), ('hooks', '*'), ('healthz', ''))
    """
    first, _, rest = pattern[1:].partition("/")
    second = rest.partition("/")[0]
    return _ANY if "{" in first else first, _ANY if "{" in second else second
