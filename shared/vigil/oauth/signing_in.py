"""Signing in to an MCP server: from its address to tokens, with a person in between.

The MCP SDK's client does it: where tokens are given (RFC 9728, 8414), who we are there (RFC 7591,
or a document of ours), a code by PKCE, for this server alone (RFC 8707), and who answers (RFC
9207). A person follows a link meanwhile; what their browser comes back with is handed in.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx2
import msgspec
import structlog
from mcp.client.auth import (
    OAuthClientProvider,
    OAuthFlowError,
    OAuthRegistrationError,
    OAuthTokenError,
)
from mcp.client.auth.utils import is_valid_client_metadata_url, union_scopes
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from ..background.end import end_tasks
from ..errors import VigilError
from ..fields import secrets
from ..net.client import FAILURES, why_failed
from ..net.ssrf import ANYWHERE, RequestRefused, target_of
from ..settings.servers import McpServer
from . import kept, outlet, words
from .kept import KeptSignIn

log = structlog.get_logger("vigil.oauth")

PATIENCE_S: Final = 600.0
"""For the person, from the link to the end."""
LINK_LENGTH_MAX: Final = 8192
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_HELLO: Final = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
"""Is asked to be told where one signs in; what is answered otherwise doesn't matter."""


class SignInFailed(VigilError):
    """Nobody is signed in, and this is why."""


class NothingToSignIn(SignInFailed):
    """The server lets anybody in."""


class CameBack(msgspec.Struct, frozen=True, kw_only=True):
    """What a browser came back with."""

    state: str
    code: str = ""
    iss: str | None = None
    error: str = ""


def came_back(query: str) -> CameBack:
    """Read it of an address's query; the first of what is there twice.

    >>> came_back("code=c&state=s&iss=https%3A%2F%2Fa.example").iss
    'https://a.example'
    """
    found = {name: values[0] for name, values in parse_qs(query[:LINK_LENGTH_MAX]).items()}
    return CameBack(
        state=found.get("state", ""),
        code=found.get("code", ""),
        iss=found.get("iss"),
        error=words.checked(found["error"]) or "refused" if "error" in found else "",
    )


def joined(link: str) -> tuple[str, str]:
    """Return the SDK's link, which appends our question to whatever the server says is its page,
    as it has to be, and our state in it. Raises: SignInFailed, it would ask something else.

    >>> joined("https://a.example/in?tenant=x?state=s&client_id=c")
    ('https://a.example/in?tenant=x&state=s&client_id=c', 's')
    """
    place, _, query = link.rpartition("?")
    ours, theirs = parse_qs(query), parse_qs(urlsplit(place).query, keep_blank_values=True)
    if "#" in place or ours.keys() & theirs.keys():
        raise SignInFailed("the link to sign in at asks for something else than we do")
    return f"{place}{'&' if '?' in place else '?'}{query}", ours["state"][0]


class SigningIn:
    """One sign-in to one server. `begin`, then `come_back` from wherever, then `finish`.

    Args:
        redirect: where the browser is to come back to.
        ports_never: that nothing is asked at: the broker's.
    """

    def __init__(
        self,
        home: Path,
        name: str,
        section: McpServer,
        redirect: str,
        *,
        ports_never: Collection[int] = (),
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._now_s = now_s
        self._home, self._name, self._section = home, name, section
        self._before = kept.read(home, name, section.url)
        self._there = kept.id_of(home, name)
        self._storage = _Storage(self._known_as(redirect))
        loop = asyncio.get_running_loop()
        self._link: asyncio.Future[str] = loop.create_future()
        self._returned: asyncio.Future[CameBack] = loop.create_future()
        self._ports_never = tuple(ports_never)
        self._provider = _CarefulProvider(
            section.url,
            OAuthClientMetadata(
                redirect_uris=[AnyUrl(redirect)],
                client_name="Vigil",
                application_type="native" if urlsplit(redirect).hostname in LOOPBACK else "web",
            ),
            self._storage,
            self._lead,
            self._wait,
            client_metadata_url=section.client_id if _is_document(section.client_id) else None,
        )
        if section.client_id and not _is_document(section.client_id):
            self._provider.by_hand = section.client_id
        if self._before is not None:
            self._provider.scope_wanted = self._before.scope_wanted
        self._task: asyncio.Task[httpx2.Response] | None = None
        self._state = ""

    @property
    def state(self) -> str:
        """By which what comes back is known; once it has begun."""
        return self._state

    async def begin(self) -> str:
        """Find out where one signs in -> the link that a person is to follow.

        Raises:
            NothingToSignIn: nobody need.
            SignInFailed: it can't be done there.
        """
        task = self._begun()
        await asyncio.wait((task, self._link), return_when=asyncio.FIRST_COMPLETED)
        if not self._link.done():
            status = (await self._outcome(task)).status_code
            if status < 500 and status not in (401, 403, 404):
                raise NothingToSignIn("it lets anybody in: there is nothing to sign in to")
            raise SignInFailed(f"it answered HTTP {status}, and not where one signs in")
        return self._link.result()

    def come_back(self, found: CameBack) -> None:
        """Hand in what the browser came back with. A second time nothing happens."""
        if not self._returned.done():
            self._returned.set_result(found)

    async def finish(self) -> None:
        """Wait until it is done, and keep it. Raises: SignInFailed."""
        status = (await self._outcome(self._begun())).status_code
        tokens, context = self._storage.tokens, self._provider.context
        if status in (401, 403) or tokens is None:
            raise SignInFailed(
                f"one signed in, and the server still answers HTTP {status}: "
                f"{words.MEANINGS['invalid_token']}"
            )
        if context.oauth_metadata is None or self._storage.client is None:
            raise SignInFailed("the server that gives tokens doesn't say what it is (RFC 8414)")
        told = context.protected_resource_metadata
        made = KeptSignIn(
            url=self._section.url,
            client=_plain(self._storage.client),
            tokens=_plain(tokens),
            expires_at=kept.until(self._now_s(), tokens.expires_in),
            server=_plain(context.oauth_metadata),
            resource=None if told is None else _plain(told),
        )
        if not await asyncio.to_thread(kept.write_new, self._home, self._name, made, self._there):
            raise SignInFailed("somebody signed in to another URL of it meanwhile")
        log.info("signed in", action="mcp.signed_in", server=self._name)

    async def close(self) -> None:
        """Go no further."""
        if self._task is not None:
            await end_tasks(self._task)

    # ------------------------------------------------------------ on the way

    def _begun(self) -> asyncio.Task[httpx2.Response]:
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="sign-in")
        return self._task

    async def _run(self) -> httpx2.Response:
        private = self._section.allow_private
        headers = {"accept": "application/json, text/event-stream"}
        async with outlet.client(
            allow_private=private, ports_never=self._ports_never, auth=self._provider
        ) as client:
            return await client.post(self._section.url, json=_HELLO, headers=headers)

    async def _lead(self, link: str) -> None:
        """Take the link. Raises: SignInFailed, nobody should follow it."""
        link, self._state = joined(link)
        try:
            # Where a browser goes isn't ours to guard, but what a person is shown has to be a link.
            target = target_of(link[:2000], ANYWHERE)
        except RequestRefused as error:
            raise SignInFailed(f"the link to sign in at {error.reason}") from error
        if target.scheme != "https" and not self._section.allow_private:
            raise SignInFailed("the link to sign in at is no https")
        if len(link) > LINK_LENGTH_MAX:
            raise SignInFailed("the link to sign in at is too long")
        self._link.set_result(link)

    async def _wait(self) -> AuthorizationCodeResult:
        try:
            async with asyncio.timeout(PATIENCE_S):
                found = await self._returned
        except TimeoutError:
            raise SignInFailed("nobody came back from there in time") from None
        if found.error:
            raise SignInFailed(words.meaning(found.error, "it was refused there"))
        return AuthorizationCodeResult(code=found.code, state=found.state, iss=found.iss)

    async def _outcome(self, task: asyncio.Task[httpx2.Response]) -> httpx2.Response:
        try:
            return await task
        except SignInFailed:
            raise
        except RequestRefused as error:
            raise SignInFailed(f"a URL on the way {error.reason}") from error
        except FAILURES as error:
            raise SignInFailed(f"it can't be reached ({why_failed(error)})") from error
        except OAuthRegistrationError as error:
            raise SignInFailed(
                "it doesn't take us as a new client; make one there by hand, and put its id "
                f"into `client_id` of [mcp.{self._name}]"
            ) from error
        except OAuthTokenError as error:
            code = words.code_of(str(error).partition(": ")[2].encode())
            raise SignInFailed(words.meaning(code, "it gave no token")) from error
        except OAuthFlowError as error:
            raise SignInFailed(_reason(error)) from error
        except (ValueError, KeyError, ArithmeticError, RecursionError) as error:
            raise SignInFailed("what it says of signing in can't be read") from error

    def _known_as(self, redirect: str) -> OAuthClientInformationFull | None:
        """Return what we are known as there, if we are, and may come back to where we want to."""
        section, before = self._section, self._before
        if section.client_id and not _is_document(section.client_id):
            secret = (
                secrets.of_file("client_secret_file", section.client_secret_file, self._home)
                if section.client_secret_file
                else None
            )
            is_same = before is not None and before.client.get("client_id") == section.client_id
            return OAuthClientInformationFull(
                client_id=section.client_id,
                client_secret=secret,
                # Made by hand at one server: no other one that is named later gets the secret.
                issuer=before.server.get("issuer") if before is not None and is_same else None,
                redirect_uris=[AnyUrl(redirect)],
                token_endpoint_auth_method=_ANY if secret else "none",
            )
        if before is None or "invalid_client" in before.refused or section.client_id:
            return None  # what is known no more is made anew
        with contextlib.suppress(ValueError):
            known = OAuthClientInformationFull.model_validate(before.client)
            if known.client_secret_expires_at in (None, 0) and AnyUrl(redirect) in (
                known.redirect_uris or ()
            ):
                return known
        return None


_ANY: Final = "any"


class _CarefulProvider(OAuthClientProvider):
    """The SDK's, which goes on only where a code is of use to nobody else (OAuth 2.1, 4.1.1)."""

    scope_wanted = ""
    by_hand = ""
    """The id of a client that a person made there."""

    async def _perform_authorization_code_grant(self) -> tuple[str, str]:
        found = self.context.oauth_metadata
        if found is None:
            raise SignInFailed("the server that gives tokens doesn't say what it is (RFC 8414)")
        if "S256" not in (found.code_challenge_methods_supported or ()):
            raise SignInFailed("the server that gives tokens knows no PKCE, so it isn't safe")
        client, offered = self.context.client_info, found.token_endpoint_auth_methods_supported
        if self.by_hand and (client is None or client.client_id != self.by_hand):
            raise SignInFailed(
                "it names another server that gives tokens than where one signed in before; "
                "if that is right, sign out, and put a client of the new one into `client_id`"
            )
        if client is not None and client.token_endpoint_auth_method == _ANY:
            # Made by hand, so nobody told how it shows its secret (RFC 8414: Basic by default).
            is_post = offered is not None and "client_secret_basic" not in offered
            how = "client_secret_post" if is_post else "client_secret_basic"
            client.token_endpoint_auth_method = how
        wanted = union_scopes(self.context.client_metadata.scope, self.scope_wanted)
        self.context.client_metadata.scope = wanted
        return await super()._perform_authorization_code_grant()


class _Storage:
    """What a sign-in found out; written when it is done."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self.client = client
        self.tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def _is_document(client_id: str) -> bool:
    return is_valid_client_metadata_url(client_id)


def _plain(model: Any) -> dict[str, Any]:
    told: dict[str, Any] = model.model_dump(mode="json", exclude_none=True)
    return told


_OURS: Final = (
    ("State parameter mismatch", "what came back isn't of this sign-in"),
    ("Authorization response", "somebody else than the server that gives tokens answered"),
    ("No authorization code", "no code came back"),
    ("Authorization server metadata issuer", "the server that gives tokens says it's another one"),
    ("Protected resource", "the server says that it's another one than the URL names (RFC 9728)"),
)


def _reason(error: OAuthFlowError) -> str:
    """Return why a flow ended, in our words: the SDK's hold codes and texts of strangers."""
    text = str(error)
    return next((told for begin, told in _OURS if text.startswith(begin)), "it can't be done there")
