"""A sign-in in use: its token with each request, exchanged when it expires, by one at a time.

The SDK's own client isn't used here, as it asks a person whenever a token is refused, also after a
restart with one that could be exchanged, and sends one request at a time. What is exchanged, and
how, is its code.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncGenerator, Callable, Collection
from pathlib import Path
from typing import Any, Final

import httpx2
import structlog
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from msgspec.structs import replace
from pydantic import AnyUrl, ValidationError

from ..files import locked
from ..net.client import FAILURES, why_failed
from ..net.ssrf import RequestRefused
from . import kept, outlet, words
from .kept import KeptSignIn

log = structlog.get_logger("vigil.oauth")

EARLY_S: Final = 30.0
"""Before it expires a token is exchanged: clocks differ, and requests take time."""
TRIES: Final = 300
TRY_AGAIN_S: Final = 0.1
"""While another process exchanges it."""
_FINAL: Final = frozenset({400, 401, 403})
"""With these the server that gives tokens says no; with anything else it may do so later."""


class _Unsettled(Exception):
    """A token couldn't be exchanged just now."""


class Bearer(httpx2.Auth):
    """Lets requests to one server in.

    Args:
        ports_never: that no token is exchanged at: the broker's.
    """

    def __init__(
        self,
        home: Path,
        name: str,
        url: str,
        *,
        allow_private: bool,
        ports_never: Collection[int] = (),
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._now_s = now_s
        self._home, self._name, self._url = home, name, url
        self._allow_private, self._ports_never = allow_private, tuple(ports_never)
        self._lock = asyncio.Lock()
        self.problem = ""
        """Why requests aren't let in; empty: they are, or nobody has signed in."""

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        seen = await self._read()
        if seen is None or (seen.refused and not seen.scope_wanted):
            self.problem = "" if seen is None else self._again(seen.refused)
            yield request
            return
        if seen.expires_at is not None and self._now_s() > seen.expires_at - EARLY_S:
            seen = await self._exchanged(seen)
        response = yield _with(request, seen)
        if response.status_code == 401:
            # It isn't good any more, whatever was said of how long it would be.
            fresh = await self._exchanged(seen)
            if fresh.tokens != seen.tokens:
                response = yield _with(request, fresh)
            seen = fresh
        await self._judge(seen, response)

    async def _judge(self, seen: KeptSignIn, response: httpx2.Response) -> None:
        """Note whether it was let in."""
        challenge = response.headers.get("www-authenticate", "")
        code = words.checked(words.challenged(challenge, "error"))
        if response.status_code == 403 and code == "insufficient_scope":
            scope = words.challenged(challenge, "scope")
            await self._refuse(seen, words.meaning(code, "it wants more rights"), scope)
        elif response.status_code == 401 and not self.problem:
            why = words.meaning(code or "invalid_token", words.MEANINGS["invalid_token"])
            await self._refuse(seen, why)
        elif response.status_code not in (401, 403):
            self.problem = ""
            # That a token is good for this says nothing of the call that wants more rights: what is
            # noted of that stays until somebody signs in, who then agrees to those, too.
            if seen.refused and not seen.scope_wanted:
                await self._note(seen, refused="")

    # ------------------------------------------------------------ exchanging

    async def _exchanged(self, seen: KeptSignIn) -> KeptSignIn:
        """Return the sign-in with another token than was seen; as it was, if there is none."""
        async with self._lock:
            now = await self._read()
            if now is None or now.tokens != seen.tokens:
                return now or seen  # somebody did, or signed in anew
            if not now.tokens.get("refresh_token") or (now.refused and not now.scope_wanted):
                return now
            try:
                async with self._alone():
                    now = await self._read()
                    if now is None or now.tokens != seen.tokens:
                        return now or seen
                    return await self._exchange(now)
            except _Unsettled as error:
                self.problem = f"its sign-in can't be renewed just now: {error}"
                return seen

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None]:
        """Keep other processes from exchanging meanwhile: a token that is used twice may cost
        both of them theirs (OAuth 2.1, 4.3.1)."""
        file = kept.path_of(self._home, self._name).with_suffix(".lock")
        for _ in range(TRIES):
            if (held := await asyncio.to_thread(locked, file)) is not None:
                break
            await asyncio.sleep(TRY_AGAIN_S)
        else:
            raise _Unsettled("another process does so")
        try:
            yield
        finally:
            os.close(held)

    async def _exchange(self, seen: KeptSignIn) -> KeptSignIn:
        """Raises: _Unsettled."""
        try:
            provider = provider_of(seen)
        except ValidationError as error:
            raise _Unsettled("what is kept of it can't be read") from error
        try:
            async with outlet.client(
                allow_private=self._allow_private, ports_never=self._ports_never
            ) as client:
                response = await client.send(await provider._refresh_token())
        except RequestRefused as error:
            raise _Unsettled(f"the server that gives tokens: its URL {error.reason}") from error
        except FAILURES as error:
            raise _Unsettled(f"the server that gives tokens: {why_failed(error)}") from error
        if response.status_code in _FINAL:
            code = words.code_of(response.content)
            await self._refuse(seen, words.meaning(code or "invalid_grant", "it was refused"))
            return replace(seen, refused=self.problem)
        try:
            is_taken = await provider._handle_refresh_response(response)
        except (ValueError, ArithmeticError, RecursionError) as error:
            raise _Unsettled("what the server that gives tokens says can't be read") from error
        if not is_taken:
            raise _Unsettled(f"the server that gives tokens answered {response.status_code}")
        if (tokens := provider.context.current_tokens) is None:
            raise _Unsettled("the server that gives tokens gave none")
        fresh = replace(
            seen,
            tokens=tokens.model_dump(mode="json", exclude_none=True),
            expires_at=kept.until(self._now_s(), tokens.expires_in),
            refused="",
        )
        # What was used may be worth nothing now: nothing is sent before the next is kept.
        await asyncio.to_thread(kept.revise, self._home, self._name, seen, lambda _: fresh)
        log.info("token exchanged", action="mcp.token", server=self._name)
        self.problem = ""
        return fresh

    # ------------------------------------------------------------ what is kept

    async def _read(self) -> KeptSignIn | None:
        return await asyncio.to_thread(kept.read, self._home, self._name, self._url)

    async def _refuse(self, seen: KeptSignIn, why: str, scope: str = "") -> None:
        self.problem = self._again(why)
        if seen.refused != why or seen.scope_wanted != scope:
            log.warning("not let in", action="mcp.refused", server=self._name, reason=why)
            await self._note(seen, refused=why, scope_wanted=scope)

    async def _note(self, seen: KeptSignIn, **changes: Any) -> None:
        with contextlib.suppress(OSError):
            await asyncio.to_thread(
                kept.revise, self._home, self._name, seen, lambda now: replace(now, **changes)
            )

    def _again(self, why: str) -> str:
        return f"{why}; {kept.SIGN_IN_AGAIN.format(name=self._name)}"


def _with(request: httpx2.Request, seen: KeptSignIn) -> httpx2.Request:
    request.headers["Authorization"] = f"Bearer {seen.tokens.get('access_token', '')}"
    return request


def provider_of(seen: KeptSignIn) -> OAuthClientProvider:
    """Return the SDK's client with all that the sign-in found out. Raises: ValidationError."""
    client = OAuthClientInformationFull.model_validate(seen.client)
    redirects = client.redirect_uris or [AnyUrl("http://127.0.0.1/")]
    provider = OAuthClientProvider(
        seen.url, OAuthClientMetadata(redirect_uris=redirects), _Nowhere()
    )
    context = provider.context
    context.client_info = client
    context.current_tokens = OAuthToken.model_validate(seen.tokens)
    context.oauth_metadata = OAuthMetadata.model_validate(seen.server)
    if seen.resource is not None:
        context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(
            seen.resource
        )
    return provider


class _Nowhere:
    """The SDK's place for tokens; ours is the file, which is written with all that belongs."""

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Not kept here."""

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Not kept here."""
