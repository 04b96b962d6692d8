#!/usr/bin/env bash
# The client of the MCP SDK for Python doesn't begin a new session when its own server has ended the old one.
#
# The specification (2025-11-25, Streamable HTTP, Session Management) has a server answer 404 to a request of a session that is no
# more, and the client "MUST start a new session by sending a new InitializeRequest without a session ID attached". One would expect
# that, or at least an error by which a program can tell an ended session from a tool's refusal: the client has one of its own,
# "Session terminated", for a 404.
#
# Seen (2026-11-28, mcp 2.3.0): the SDK's server answers 404 with an error of JSON-RPC in the body, and the client hands that on in the
# place of its own: each call ends in MCPError -32600 "Session not found", the code of any invalid request, and so does each one after
# it, for as long as the client is open. A long-lived client has to look at the status in a transport of its own, and connect anew.
set -euo pipefail
mcp=2.3.0
uvicorn=0.54.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q "mcp==$mcp" "uvicorn==$uvicorn"
cat > run.py <<'P'
import asyncio
from importlib.metadata import version

import httpx2
import mcp_types as types
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError


async def list_tools(context, params):
    return types.ListToolsResult(tools=[types.Tool(name="hello", input_schema={"type": "object"})])


async def call_tool(context, params):
    return types.CallToolResult(content=[types.TextContent(type="text", text="hello")])


async def main():
    print("mcp", version("mcp"))
    manager = StreamableHTTPSessionManager(
        Server("a", on_list_tools=list_tools, on_call_tool=call_tool)
    )
    sessions = []

    async def app(scope, receive, send):
        sessions.extend(v.decode() for k, v in scope["headers"] if k == b"mcp-session-id")
        await manager.handle_request(scope, receive, send)

    web = uvicorn.Server(uvicorn.Config(app, port=0, lifespan="off", log_config=None))
    async with manager.run():
        serving = asyncio.create_task(web.serve())
        while not web.started:
            await asyncio.sleep(0.01)
        url = f"http://127.0.0.1:{web.servers[0].sockets[0].getsockname()[1]}/mcp"
        told = []
        async with Client(streamable_http_client(url), mode="legacy") as client:
            print("in its session:", (await client.call_tool("hello", {})).content[0].text)
            headers = {"mcp-session-id": sessions[-1], "accept": "application/json, text/event-stream"}
            async with httpx2.AsyncClient() as other:
                print("the session is ended: HTTP", (await other.delete(url, headers=headers)).status_code)
            for _ in range(2):
                try:
                    told.append((await client.call_tool("hello", {})).content[0].text)
                except MCPError as error:
                    told.append(f"MCPError {error.error.code} {error.error.message}")
                print("and then:", told[-1])
        web.should_exit = True
        await serving
    if told != ["MCPError -32600 Session not found"] * 2:
        raise SystemExit(f"it behaves otherwise now: {told}")


asyncio.run(main())
P
venv/bin/python run.py
