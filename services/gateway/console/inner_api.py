"""The API as a page asks it: the same routes, in the same process, as whoever looks at the page.

So a page can do what its reader could do with a token, by the code that checks a token's requests,
and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

import msgspec
from fastapi import Response

from vigil.settings.tokens import Principal

from ..access import PRINCIPAL
from ..http.problem import Problem, ProblemBody

T = TypeVar("T")
_GOOD: Final = 400


class InnerApi:
    """Makes requests of one person.

    Raises, from each method: Problem, as the API answers it.
    """

    def __init__(self, app: Any, scope: Any, principal: Principal) -> None:
        self._app = app
        self._outer = scope
        self._principal = principal

    async def get(self, kind: type[T], path: str, /, **query: Any) -> T:
        """Read something; parameters that are None are left out."""
        return msgspec.json.decode(await self._ask("GET", path, query), type=kind)

    async def checks(self, kind: type[T], path: str) -> T:
        """Read what is answered with 503, too, if it isn't as it should be."""
        _, body, _ = await self._answer("GET", path, {}, b"")
        return msgspec.json.decode(body, type=kind)

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        revision: int | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Any:
        """Change something; with `revision`, only if it's still that one."""
        data = b"" if body is None else msgspec.json.encode(body)
        answer = await self._ask(method, path, query or {}, data, revision)
        return msgspec.json.decode(answer or b"null")

    async def upload(self, path: str, data: bytes, /, **query: Any) -> Any:
        """Send bytes as they are."""
        return msgspec.json.decode(await self._ask("POST", path, query, data))

    async def follow(self, path: str, last_id: str | None, receive: Any, send: Any) -> None:
        """Answer a request with a stream of the API, after `last_id` if given."""
        headers = [] if last_id is None else [(b"last-event-id", last_id.encode())]
        await self._app(self._scope("GET", path, {}) | {"headers": headers}, receive, send)

    async def download(self, path: str) -> Response:
        """Return a file as the API answers it."""
        status, body, headers = await self._answer("GET", path, {}, b"")
        _check(status, body)
        return Response(body, status, headers)

    async def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        data: bytes = b"",
        revision: int | None = None,
    ) -> bytes:
        status, body, _ = await self._answer(method, path, query, data, revision)
        _check(status, body)
        return body

    async def _answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        data: bytes,
        revision: int | None = None,
    ) -> tuple[int, bytes, dict[str, str]]:
        head: dict[str, Any] = {}
        chunks: list[bytes] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": data, "more_body": False}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                head.update(message)
            else:
                chunks.append(message.get("body", b""))

        told = [(b"content-type", b"application/json")] if data else []
        if revision is not None:
            told.append((b"if-match", b'"%d"' % revision))
        scope = self._scope(method, path, query) | {"headers": told}
        await self._app(scope, receive, send)
        headers = {name.decode(): value.decode() for name, value in head["headers"]}
        return int(head["status"]), b"".join(chunks), headers

    def _scope(self, method: str, path: str, query: Mapping[str, Any]) -> dict[str, Any]:
        given = {name: _plain(value) for name, value in query.items() if value is not None}
        kept = ("type", "asgi", "http_version", "server", "client", "scheme")
        return {name: self._outer[name] for name in kept if name in self._outer} | {
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": urlencode(given, doseq=True).encode(),
            PRINCIPAL: self._principal,
        }


def _check(status: int, body: bytes) -> None:
    if status >= _GOOD:
        told = msgspec.json.decode(body, type=ProblemBody)
        raise Problem(told.status, told.detail, field=told.field)


def _plain(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
