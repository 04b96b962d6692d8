"""A small client of the HTTP API, on the standard library only.

It is synchronous: the command line makes a few calls and ends. Each call is one connection, so
nothing has to be closed. An asyncio program calls it with :func:`asyncio.to_thread`, and follows
a session on the WebSocket that `socket_url` and `headers` lead to.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from ..backoff import Backoff
from ..errors import ConfigError, OutcomeUnknown, Unavailable, VigilError
from ..local import runfile
from ..local.token import read_token
from ..settings import config
from ..settings.config import Settings
from ..texts.trouble import reason_of
from .calls.agents import AgentCalls
from .calls.approvals import DecidingCalls
from .calls.board import BoardCalls
from .calls.cron import CronCalls
from .calls.grants import GrantingCalls
from .calls.health import HealthCalls
from .calls.jobs import JobCalls
from .calls.memories import MemoryCalls
from .calls.method_group import given, query, segment
from .calls.person import PersonCalls
from .calls.reach import ReachCalls
from .calls.sessions import SessionCalls
from .formats.cloud_event import MEDIA_TYPE as EVENT_MEDIA_TYPE
from .formats.cloud_event import cloud_event
from .formats.sse import ServerEvent, events

DEFAULT_PORT: Final = 8420
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
TIMEOUT_S: Final = 15.0
STORY_TIMEOUT_S: Final = 60.0
SILENCE_MAX_S: Final = 40.0
"""A stream shows every 15 s that it lives."""
AGAIN: Final = Backoff(0.2, 2.0)
"""The longest wait between two attempts to come back to a stream."""


class ApiError(VigilError):
    """The gateway refused a request; `status` is HTTP's, `problem` the problem+json body, of which
    the message is the `detail`; without one, what the status is called.

    >>> str(ApiError(422, {"title": "Unprocessable Entity", "detail": "name must not be empty"}))
    'name must not be empty'
    >>> str(ApiError(404, {}))
    'Not Found'
    """

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.problem = dict(problem)
        title = str(problem.get("title") or http.client.responses.get(status, "refused"))
        super().__init__(str(problem.get("detail") or title))


def is_passing(error: VigilError) -> bool:
    """Whether an error may be over in a moment: the gateway is away, starts, or has too much to do.

    >>> is_passing(Unavailable("nobody there")), is_passing(ApiError(404, {}))
    (True, False)
    """
    if isinstance(error, ApiError):
        return error.status >= 500 or error.status == http.client.TOO_MANY_REQUESTS
    return isinstance(error, Unavailable)


class Client(
    CronCalls,
    MemoryCalls,
    DecidingCalls,
    GrantingCalls,
    HealthCalls,
    JobCalls,
    PersonCalls,
    ReachCalls,
    SessionCalls,
    BoardCalls,
    AgentCalls,
):
    """The API of one gateway, as one user.

    Every method raises `ApiError` if the gateway refuses, `Unavailable` if it can't be reached,
    `OutcomeUnknown` if it didn't answer in time.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        stranger: str = "",
    ) -> None:
        """`stranger` is what is said beside it if the token isn't known there."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"VIGIL_URL={url!r}: expected http://HOST:PORT")
        self.url = url.rstrip("/")
        self._parts = parts
        self._token = token
        self._timeout_s = timeout_s
        self._stranger = stranger

    def __repr__(self) -> str:
        return f"Client({self.url!r}, token=<{'set' if self._token else 'not set'}>)"

    @property
    def headers(self) -> dict[str, str]:
        """What authenticates a request."""
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    def socket_url(self, session_key: str, *, client: str, cursor: int | None = None) -> str:
        """Return where a session can be followed; `client` names the device of the cursor, and
        `cursor` is where to begin instead."""
        scheme = "wss" if self._parts.scheme == "https" else "ws"
        wanted = query({"session": session_key, "client": client, "cursor": cursor})
        return f"{scheme}{self.url[len(self._parts.scheme) :]}/api/ws{wanted}"

    # ------------------------------------------------------------ what it answers

    def me(self) -> dict[str, Any]:
        """Return who the token belongs to."""
        return self._object("GET", "/api/me")

    def status(self) -> dict[str, Any]:
        """Return the services that answer, and the switches."""
        return self._object("GET", "/api/status")

    def chat(
        self,
        message: str,
        *,
        user: str,
        thread: str | None,
        agent: str,
        attachments: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Say something and wait for the answer, as long as the gateway does (SPEC I-5)."""
        body = given(message=message, userId=user, agentId=agent, threadId=thread)
        body |= {"attachments": list(attachments)} if attachments else {}
        return self._object("POST", "/api/chat", body, timeout_s=90.0)

    def upload(self, name: str, data: bytes) -> dict[str, Any]:
        """Upload an image, a PDF file or a text; messages name it by the `hash` of the answer."""
        path = "/api/attachments" + query({"name": name})
        answer = self.request("POST", path, data, media_type="application/octet-stream")
        return self._checked(answer, f"POST {path}")

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools there are, by source, with what is held back and why."""
        found: list[dict[str, Any]] = self._object("GET", "/api/tools")["sources"]
        return found

    def approve_tools(self, server: str, tools: Mapping[str, str]) -> dict[str, Any]:
        """Let tools of an MCP server that are held back be offered as they are; an admin may.

        Raises: ApiError with status 409, if one has changed since it was read.

        Args:
            tools: the name of each, and the `digest` of what was read of it.
        """
        path = f"/api/tools/{segment(server)}/approvals"
        return self._object("POST", path, {"tools": dict(tools)})

    def publish_event(
        self,
        key: str,
        kind: str,
        data: Any,
        *,
        source: str,
        event_id: str | None = None,
        occurred_at: datetime | None = None,
    ) -> dict[str, Any]:
        """Tell a session what happened outside, as a CloudEvent; return ``{event_id, seq}``.

        `kind` is its `type`. With the same `source` and `event_id` it is stored once, so that is
        how to repeat it after an unknown outcome.
        """
        id_ = event_id or str(uuid.uuid4())
        event = cloud_event(key, kind, data, source=source, id_=id_, occurred_at=occurred_at)
        answer = self.request("POST", "/api/events", event, media_type=EVENT_MEDIA_TYPE)
        return self._checked(answer, "POST /api/events")

    def why(self, id_: str, *, session: str | None = None) -> dict[str, Any]:
        """Return why something was said, or was not; `session` narrows where it's looked for."""
        where = f"/api/why/{segment(id_)}" + query({"session": session})
        return self._object("GET", where, timeout_s=STORY_TIMEOUT_S)

    def tokens(self, key: str) -> Iterator[dict[str, Any]]:
        """Yield the pieces of answers in the making of a session, as they come: `turn`, `attempt`,
        `text`. It ends when the gateway is away; close the iterator to end it."""
        for event in self._stream(f"/api/sessions/{segment(key)}/tokens", None):
            if event.data:
                yield msgspec.json.decode(event.data)

    def dead_letters(
        self, *, only_open: bool = True, service: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield dead letters, the oldest first: one's own, or with an admin token everybody's."""
        wanted = {"open": only_open, "service": service, "after": None}
        while True:
            page = self._object("GET", "/api/dead" + query(wanted))
            yield from page["letters"]
            wanted["after"] = page.get("next_after")
            if wanted["after"] is None:
                return

    def dead_letter(self, id_: str) -> dict[str, Any]:
        """Return a dead letter and what died."""
        return self._object("GET", f"/api/dead/{segment(id_)}")

    def requeue_dead_letter(self, id_: str) -> dict[str, Any]:
        """Try it again. Raises: ApiError with status 409, it can't be or was done before."""
        return self._object("POST", f"/api/dead/{segment(id_)}/requeue")

    def discard_dead_letter(self, id_: str) -> dict[str, Any]:
        """Lay it aside. Raises: ApiError with status 409, it was ended before."""
        return self._object("POST", f"/api/dead/{segment(id_)}/discard")

    def signals(
        self,
        *,
        agent: str | None = None,
        kind: str | None = None,
        session: str | None = None,
        user: str | None = None,
        after: int | None = None,
        follow: bool = True,
        on_away: Callable[[VigilError], None] | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Yield signals as they come, oldest first, each with its `cursor`.

        It comes back by itself when the stream ends or the gateway is away, and goes on after the
        last one; only the first connection may fail. Close the iterator to end it.

        Args:
            kind: one, or half of one: ``message.*``.
            user: whose; an admin may name anybody, or nobody for everybody's.
            after: a cursor; 0 begins with the oldest kept. None: what happens from now on.
            follow: False ends it after what is stored.
            on_away: is told why the stream is away, each time before it's tried again.
        """
        wanted = {"agent": agent, "kind": kind, "session": session, "user": user}
        if not follow:
            after, wanted["follow"] = after or 0, "false"
        failures, has_begun = 0, False
        while True:
            try:
                for event in self._stream("/api/signals" + query(wanted), after):
                    after, failures, has_begun = int(event.id), 0, True
                    if event.data:
                        yield {"cursor": after, **msgspec.json.decode(event.data)}
                if not follow:
                    return
            except (Unavailable, ApiError) as error:
                if not has_begun or not follow or not is_passing(error):
                    raise
                if on_away is not None:
                    on_away(error)
            failures += 1
            time.sleep(AGAIN.after(failures))

    # ------------------------------------------------------------ inside

    def _stream(self, path: str, after: int | None) -> Iterator[ServerEvent]:
        """Read one stream of events to its end."""
        headers = {"Accept": "text/event-stream", "Connection": "close"} | self.headers
        if after is not None:
            headers["Last-Event-ID"] = str(after)
        connection = self._connection(SILENCE_MAX_S)
        where = self._parts.path.rstrip("/") + path
        try:
            connection.request("GET", where, headers=headers)
            response = connection.getresponse()
            if response.status >= 400:
                answer = _decode(response.read(ANSWER_BYTES_MAX))
                raise ApiError(response.status, answer if isinstance(answer, dict) else {})
            yield from events(response)
        except TimeoutError as error:
            raise OutcomeUnknown(f"{self.url} fell silent") from error
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"no Vigil at {self.url} ({reason_of(error)})") from error
        finally:
            connection.close()

    def _object(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        timeout_s: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        answer = self.request(method, path, body, timeout_s=timeout_s, headers=headers)
        return self._checked(answer, f"{method} {path}")

    def _checked(self, answer: Any, what: str) -> dict[str, Any]:
        if not isinstance(answer, dict):
            raise Unavailable(f"{self.url} answered {what} with something else than Vigil")
        return answer

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        timeout_s: float | None = None,
        media_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Make one request; return the decoded JSON, a text that is none, or None: it's empty."""
        sent = {"Accept": "application/json", "Connection": "close"} | self.headers
        sent |= headers or {}
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            sent["Content-Type"] = media_type
        connection = self._connection(timeout_s or self._timeout_s)
        try:
            connection.request(method, self._parts.path.rstrip("/") + path, data, sent)
            response = connection.getresponse()
            raw = response.read(ANSWER_BYTES_MAX)
        except TimeoutError as error:
            raise OutcomeUnknown(f"{self.url} did not answer in time") from error
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"no Vigil at {self.url} ({reason_of(error)})") from error
        finally:
            connection.close()
        answer = _decode(raw)
        if response.status >= 400:
            refusal = ApiError(response.status, answer if isinstance(answer, dict) else {})
            if refusal.status == http.client.UNAUTHORIZED and self._stranger:
                told = {**refusal.problem, "detail": f"{refusal}: {self._stranger}"}
                raise ApiError(refusal.status, told)
            raise refusal
        return answer

    def _connection(self, timeout_s: float) -> http.client.HTTPConnection:
        host = self._parts.hostname or ""
        if self._parts.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(
                host, self._parts.port, timeout=timeout_s, context=context
            )
        return http.client.HTTPConnection(host, self._parts.port, timeout=timeout_s)


def _decode(raw: bytes) -> Any:
    if not raw:
        return None
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return raw.decode("utf-8", "replace")


def _configured_url(settings: Settings, environ: Mapping[str, str]) -> str:
    """Return where it would listen on this machine; a mistake in the configuration is told by what
    starts something. Where it takes any free port, nobody listens at 0: another's Vigil, at the
    usual one, isn't given the token."""
    port = config.port_in(environ, settings.home)
    return f"http://127.0.0.1:{DEFAULT_PORT if port is None else port}"


def connect(settings: Settings, environ: Mapping[str, str] | None = None) -> Client:
    """Build a client for what runs here, or for what VIGIL_URL and VIGIL_TOKEN name."""
    environ = os.environ if environ is None else environ
    run = runfile.read(settings.run_file)
    token = environ.get("VIGIL_TOKEN") or read_token(settings.home)
    if url := environ.get("VIGIL_URL") or (run.url if run else ""):
        return Client(url, token)
    url = _configured_url(settings, environ)
    stranger = f"the Vigil of {settings.home} doesn't run, and another one answers at {url}"
    return Client(url, token, stranger=stranger)
