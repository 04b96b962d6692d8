"""Where a calendar is: asked over HTTP, or read as a file. What goes wrong is told in words, which
hold neither its address nor its password.

Redirects are followed within the same origin, and nowhere else: the password is that server's, and
an address that somebody else names isn't its owner's choice. What strangers' servers answer is
read up to `bytes_max`, and within one time for all of it.
"""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import urljoin

import httpx2

from ..errors import InvalidInput, Unavailable
from ..fields import secrets
from ..net.bounded import whole
from ..net.client import FAILURES, guarded_client, why_failed
from ..net.guard import GuardedTransport
from ..net.ssrf import ANYWHERE, RequestRefused, rules_to, target_of
from ..subjects import token_of
from .section import CalendarSection, address_of

REDIRECTS_MAX: Final = 3
NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
REASON_LENGTH_MAX: Final = 200
NOT_CHANGED: Final = 304


class CalendarProblem(Unavailable):
    """A calendar can't be read or written now; the text says why."""


class PasswordRefused(CalendarProblem):
    """Its server refused who asked."""

    def __init__(self, reason: str, token: str) -> None:
        super().__init__(reason)
        self.token = token
        """Stands for what was refused."""


class ServerReply(NamedTuple):
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    path: str
    """Where it is, after redirects."""


class CalendarServer:
    """The server of one calendar, for one look or one change.

    Args:
        ports_never: the broker's, say.
    """

    def __init__(
        self, section: CalendarSection, home: Path, *, ports_never: Collection[int] = ()
    ) -> None:
        self._section = section
        self._home = home
        self.url = address_of(section.url)
        rules = rules_to(self.url, ports_never)
        try:
            tls = _trust(section.ca_file, home)
        except (OSError, ssl.SSLError) as error:
            raise CalendarProblem(f"ca_file can't be used: {type(error).__name__}") from error
        self._client = guarded_client(GuardedTransport(rules, tls=tls), timeout=section.timeout_s)

    async def close(self) -> None:
        await self._client.aclose()

    def secret(self) -> str:
        """Return the password as it is now; empty: nobody logs in. Raises: CalendarProblem."""
        section = self._section
        if not section.login:
            return ""
        try:
            return secrets.of_section(
                "password", section.password, section.password_file, self._home
            )
        except InvalidInput as error:
            raise CalendarProblem(str(error)) from error

    async def ask(
        self,
        method: str,
        path: str = "",
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        content: bytes | None = None,
    ) -> ServerReply:
        """Ask once, with all of the answer.

        Args:
            path: on its server; empty: the calendar's own.

        Raises:
            PasswordRefused: 401 or 403 before anything.
            CalendarProblem: there is no whole answer; a write may have been done.
        """
        url, secret = urljoin(self.url, path) if path else self.url, self.secret()
        if not _is_same_origin(self.url, url):  # as by a path that begins with two slashes
            raise CalendarProblem("its server names an event that would be at another one")
        auth = httpx2.BasicAuth(self._section.login.encode(), secret.encode()) if secret else None
        try:
            for _ in range(REDIRECTS_MAX + 1):
                request = self._client.build_request(
                    method, url, headers=dict(headers), content=content
                )
                response = await self._client.send(request, auth=auth, stream=True)
                try:
                    location = response.headers.get("location")
                    if not response.has_redirect_location or location is None:
                        return await self._reply(response, secret)
                    following = str(httpx2.URL(url).join(location))
                finally:
                    await response.aclose()
                if not _is_same_origin(url, following):
                    raise CalendarProblem(
                        "its server leads to another one: set url to where it leads"
                    )
                url = following
        except RequestRefused as error:
            raise CalendarProblem(f"the address {error.reason}") from error
        except FAILURES as error:
            raise CalendarProblem(_words_of(error)) from error
        raise CalendarProblem(f"its server leads on and on, more than {REDIRECTS_MAX} times")

    async def _reply(self, response: httpx2.Response, secret: str) -> ServerReply:
        if response.status_code == 401:
            raise PasswordRefused(_refusal(response, has_login=bool(secret)), token_for(secret))
        size_max = self._section.bytes_max
        body = await whole(response.aiter_bytes(), size_max)
        if body is None:
            raise CalendarProblem(
                f"it has more than {size_max} bytes (bytes_max): nothing of it is read"
            )
        return ServerReply(
            response.status_code,
            response.headers,
            body,
            str(response.request.url.raw_path, "ascii"),
        )


def token_for(secret: str) -> str:
    """Return what stands for a password where it's remembered that it was refused."""
    return token_of("calendar password", secret)


def _refusal(response: httpx2.Response, *, has_login: bool) -> str:
    if not has_login:
        return "401: its server wants to know who asks: set login and password_file"
    challenges = response.headers.get("www-authenticate", "").lower()
    if challenges and "basic" not in challenges:
        kind = challenges.split(" ")[0][:20]
        return f"401: its server wants {kind!r}, and a password is all there is (Basic)"
    return "401: its server refused the login and password"


def _words_of(error: BaseException) -> str:
    if isinstance(error, httpx2.TimeoutException):
        return "its server doesn't answer"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return f"its server's certificate isn't trusted: {cause.reason}"
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpx2.ConnectError):
        return "its server can't be reached"
    return why_failed(error)


def _is_same_origin(before: str, after: str) -> bool:
    try:
        one, other = (target_of(each, ANYWHERE) for each in (before, after))
    except RequestRefused:
        return False
    return one == other


def _trust(ca_file: str, home: Path) -> ssl.SSLContext | None:
    """Return whom to trust; None: whom the system trusts. Raises: OSError, ssl.SSLError."""
    if not ca_file:
        return None
    return ssl.create_default_context(cafile=str(home / Path(ca_file).expanduser()))


# ---------------------------------------------------------------- files


def read_file(section: CalendarSection, home: Path) -> tuple[bytes, str]:
    """Return what a file holds, and what tells this state of it. Raises: CalendarProblem."""
    path = home / Path(section.file).expanduser()
    try:
        with path.open("rb") as file:
            data = file.read(section.bytes_max + 1)
    except OSError as error:
        raise CalendarProblem(f"the file can't be read: {error.strerror}") from error
    if len(data) > section.bytes_max:
        raise CalendarProblem(
            f"it has more than {section.bytes_max} bytes (bytes_max): nothing of it is read"
        )
    return data, hashlib.sha256(data).hexdigest()


def said(reply: ServerReply) -> str:
    """Say what an answer was that isn't the wanted one."""
    meanings = {
        403: "its server refuses that",
        404: "there is nothing at that address",
        405: "its server doesn't do that there",
        507: "its server has no room",
    }
    meaning = meanings.get(reply.status, "its server answered otherwise than was asked")
    return f"{reply.status}: {meaning}"[:REASON_LENGTH_MAX]
