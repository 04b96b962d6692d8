"""A server over HTTP that forgets our session: a new one is begun, and the call repeated (X-5)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from services.executor.mcp import connection
from tests.executor.test_mcp_web import Scope, Site, answer, site, using
from vigil.backoff import Backoff

__all__ = ("site",)
JSON = {"content-type": "application/json"}


class Forgetful:
    """A server of the protocol with sessions, as most are, that is started anew now and then."""

    def __init__(self, status: int, headers: dict[str, str], body: str) -> None:
        self.refusal = status, headers, body
        self.session = 1
        self.is_refusing = False
        self.runs = 0
        self.pages: list[str | None] = []
        """Of its list of tools, those that were asked for."""
        self.more: dict[str, str] = {}
        """Beside the tools of each page."""

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        headers = {k.decode(): v.decode() for k, v in scope["headers"]}
        if scope["method"] != "POST":
            await answer(405, {})(scope, receive, send)
            return
        asked = json.loads((await receive())["body"])
        mine = headers.get("mcp-session-id")
        is_call = asked.get("method") == "tools/call"
        if (mine is not None and mine != str(self.session)) or (is_call and self.is_refusing):
            status, kind, text = self.refusal
            await answer(status, kind, text.encode())(scope, receive, send)
            return
        body = {"jsonrpc": "2.0", "id": asked.get("id")} | self._told(asked)
        own = JSON | {"mcp-session-id": str(self.session)}
        status = 200 if "id" in asked else 202
        await answer(status, own, json.dumps(body).encode())(scope, receive, send)

    def _told(self, asked: dict[str, Any]) -> dict[str, Any]:
        match asked["method"]:
            case "initialize":
                info = {"name": "forgetful", "version": "1"}
                version = asked["params"]["protocolVersion"]
                result = {"protocolVersion": version, "capabilities": {"tools": {}}}
                return {"result": result | {"serverInfo": info}}
            case "tools/list":
                self.pages.append(asked.get("params", {}).get("cursor"))
                tools = [{"name": "do", "inputSchema": {"type": "object"}}]
                return {"result": {"tools": tools} | self.more}
            case "tools/call":
                self.runs += 1
                return {"result": {"content": [{"type": "text", "text": f"run {self.runs}"}]}}
        return {"error": {"code": -32601, "message": "Method not found"}}


def refused(code: int, message: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}})


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PAUSES", Backoff(0.05, 0.05))


@pytest.mark.parametrize(
    "refusal",
    [
        (404, JSON, refused(-32001, "Session not found")),
        (404, JSON, refused(-32600, "Session has been terminated")),
        (404, {"content-type": "text/html"}, "<h1>Not Found</h1>"),
        (400, JSON, refused(-32000, "Bad Request: No valid session ID provided")),
        (400, JSON, refused(-32000, "Bad Request: Server not initialized")),
    ],
)
async def test_a_session_that_is_forgotten_is_begun_anew(
    tmp_path: Path, site: tuple[Site, str], refusal: tuple[int, dict[str, str], str]
) -> None:
    """X-5: as the specification says it, and as the SDKs' own examples do."""
    site[0].instead = server = Forgetful(*refusal)
    async with using(tmp_path, site[1]) as found:
        assert (await found.call("site__do")).content == "run 1"
        server.session = 2
        told = await found.call("site__do")
        assert (told.content, told.is_error, server.runs) == ("run 2", False, 2)


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [(404, -32601, "Method not found"), (400, -32602, "session is a required property")],
)
async def test_a_refusal_of_the_same_status_is_the_servers_word(
    tmp_path: Path, site: tuple[Site, str], status: int, code: int, words: str
) -> None:
    """X-1: it is told to the model, and nothing is begun anew."""
    site[0].instead = server = Forgetful(status, JSON, refused(code, words))
    async with using(tmp_path, site[1]) as found:
        server.is_refusing = True
        told = await found.call("site__do")
        assert (told.content, told.is_error, told.is_tainted) == (words, True, True)
        assert told.origin == "mcp:site"
        server.is_refusing = False
        assert (await found.call("site__do")).content == "run 1"


async def test_a_server_that_forgets_at_once_is_given_up(
    tmp_path: Path, site: tuple[Site, str]
) -> None:
    """X-5: one that keeps no session, behind a balancer say; the call surely did not run."""
    refusal = refused(-32001, "Session not found")
    site[0].instead = server = Forgetful(404, JSON, refusal)
    async with using(tmp_path, site[1]) as found:
        server.is_refusing = True
        with pytest.raises(connection.McpSessionEnded):
            await found.call("site__do")
        assert server.runs == 0


async def test_a_list_that_goes_around_in_a_circle_has_an_end(
    tmp_path: Path, site: tuple[Site, str]
) -> None:
    """X-5: of a server that doesn't look at which page is asked for."""
    site[0].instead = server = Forgetful(404, JSON, "")
    server.more = {"nextCursor": "2"}
    async with using(tmp_path, site[1]) as found:
        assert (await found.call("site__do")).content == "run 1"
        assert server.pages == [None, "2"]
