"""An MCP server that sends mail: each call of `send` adds a line to ``FOLDER/sent``.

Started by tests, in the sandbox: ``post.py FOLDER``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.stdio import stdio_server

FOLDER = Path(sys.argv[1])
FIELDS = ("to", "subject", "body")


async def list_tools(
    context: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    schema = {"type": "object", "properties": {one: {"type": "string"} for one in FIELDS}}
    send = types.Tool(name="send", description="Send a mail.", input_schema=schema)
    return types.ListToolsResult(tools=[send])


async def call_tool(
    context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
) -> types.CallToolResult:
    with (FOLDER / "sent").open("a") as sent:
        sent.write(json.dumps(params.arguments) + "\n")
    return types.CallToolResult(content=[types.TextContent(type="text", text="sent")])


async def main() -> None:
    server: Server[Any] = Server("post", on_list_tools=list_tools, on_call_tool=call_tool)
    options = server.create_initialization_options(NotificationOptions())
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, options)


if __name__ == "__main__":
    asyncio.run(main())
