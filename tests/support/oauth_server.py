"""An OAuth server and an MCP server behind it, by the MCP SDK's own, each at an address of its own.

What people do there (agree, refuse, take back) is a method; a browser is an HTTP client.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import httpx2
import mcp_types as types
import uvicorn
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    TokenError,
)
from mcp.server.auth.routes import create_auth_routes, create_protected_resource_routes
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.routing import Route

LIFE_S = 3600


@dataclass
class Issuer:
    """The server that gives tokens; refresh tokens are good once."""

    url: str = ""
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    tokens: dict[str, AccessToken] = field(default_factory=dict)
    renewals: dict[str, RefreshToken] = field(default_factory=dict)
    used: list[str] = field(default_factory=list)
    """Refresh tokens, in the order of their use."""
    says_no: str = ""
    """The error with which a browser is sent back."""
    audience: str | None = None
    """Whom tokens are for; None: whom it was asked for."""
    is_out: bool = False
    """Whether it answers nothing but 503."""

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        if self.says_no:
            told = {"error": self.says_no, "error_description": "hunter2"}
        else:
            code = secrets.token_urlsafe(16)
            self.codes[code] = AuthorizationCode(
                code=code, scopes=params.scopes or [], expires_at=time.time() + 60,
                client_id=client.client_id, code_challenge=params.code_challenge,
                redirect_uri=params.redirect_uri, resource=params.resource,
                redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            )  # fmt: skip
            told = {"code": code}
        return f"{params.redirect_uri}?{urlencode(told | {'state': params.state or ''})}"

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._given(client, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        return self.renewals.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.used.append(refresh_token.token)
        if self.renewals.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        return self._given(client, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.tokens.pop(token.token, None)
        self.renewals.pop(token.token, None)

    async def verify_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)

    def take_back(self) -> None:
        """Let nothing count that was given."""
        self.tokens.clear()
        self.renewals.clear()

    def _given(
        self, client: OAuthClientInformationFull, scopes: list[str], resource: str | None
    ) -> OAuthToken:
        access, renewal = secrets.token_urlsafe(16), secrets.token_urlsafe(16)
        whom = self.audience or resource
        until = int(time.time()) + LIFE_S
        self.tokens[access] = AccessToken(
            token=access, client_id=client.client_id, scopes=scopes, expires_at=until, resource=whom
        )
        self.renewals[renewal] = RefreshToken(
            token=renewal, client_id=client.client_id, scopes=scopes, resource=resource
        )
        return OAuthToken(
            access_token=access, refresh_token=renewal, expires_in=LIFE_S, scope=" ".join(scopes)
        )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self.is_out and scope["path"] == "/token":
            await send({"type": "http.response.start", "status": 503, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        else:
            await self.app(scope, receive, send)

    def begin(self, url: str) -> None:
        self.url = url
        self.app = Starlette(
            routes=create_auth_routes(
                self,
                AnyHttpUrl(url),
                client_registration_options=ClientRegistrationOptions(
                    enabled=True, valid_scopes=["notes"], default_scopes=["notes"]
                ),
                revocation_options=RevocationOptions(enabled=True),
            )
        )


@dataclass
class Guarded:
    """Both servers."""

    issuer: Issuer
    url: str
    seen: list[str]
    """The tokens that calls of its tool came with."""

    async def follow(self, link: str) -> httpx2.URL:
        """Follow a link as a browser does, agree, and return where it leads."""
        async with httpx2.AsyncClient(trust_env=False) as browser:
            answer = await browser.get(link)
            assert answer.status_code == 302, answer.text
            return httpx2.URL(answer.headers["location"])


@contextlib.asynccontextmanager
async def _served(app: Any) -> AsyncIterator[str]:
    web = uvicorn.Server(uvicorn.Config(app, port=0, lifespan="off", log_config=None))
    serving = asyncio.create_task(web.serve())
    while not web.started:
        await asyncio.sleep(0.005)
    yield f"http://127.0.0.1:{web.servers[0].sockets[0].getsockname()[1]}"
    web.should_exit = True
    await serving


class _Late:
    """An application that is made once its address is known."""

    app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)


@contextlib.asynccontextmanager
async def guarded() -> AsyncIterator[Guarded]:
    """A server with a tool `whoami`, which wants the right `notes`."""
    issuer, site, seen = Issuer(), _Late(), list[str]()

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[types.Tool(name="whoami", input_schema={"type": "object"})]
        )

    async def call_tool(
        context: ServerRequestContext[Any, Any], params: Any
    ) -> types.CallToolResult:
        request = context.request
        assert request is not None
        seen.append(request.headers["authorization"].removeprefix("Bearer "))
        return types.CallToolResult(content=[types.TextContent(type="text", text="ann")])

    server = Server("guarded", on_list_tools=list_tools, on_call_tool=call_tool)
    manager = StreamableHTTPSessionManager(server, stateless=True, json_response=True)
    async with _served(issuer) as issuer_url, _served(site) as origin:
        issuer.begin(issuer_url)
        url = AnyHttpUrl(f"{origin}/mcp")
        needed = RequireAuthMiddleware(
            manager.handle_request,
            ["notes"],
            AnyHttpUrl(f"{origin}/.well-known/oauth-protected-resource/mcp"),
        )
        site.app = Starlette(
            routes=[
                *create_protected_resource_routes(url, [AnyHttpUrl(issuer_url)], ["notes"]),
                Route("/mcp", needed),
            ],
            middleware=[
                Middleware(
                    AuthenticationMiddleware,
                    backend=BearerAuthBackend(issuer, resource_server_url=url),
                ),
                Middleware(AuthContextMiddleware),
            ],
        )
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        stopped = asyncio.Event()

        async def keep() -> None:
            async with manager.run():
                started.set_result(None)
                await stopped.wait()

        keeping = asyncio.create_task(keep())
        await started
        yield Guarded(issuer, str(url), seen)
        stopped.set()
        await keeping
