"""An MCP server with letters that anybody may have written, and two tools that leave traces.

Started by tests, in the sandbox: ``letters.py FOLDER``. Reads ``FOLDER/letters.json``; each call of
`send` and `wipe` adds a line to ``FOLDER/done``.
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


def tool(name: str, **properties: Any) -> types.Tool:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return types.Tool(name=name, description=f"The tool {name}.", input_schema=schema)


async def list_tools(
    context: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    tools = [
        tool("open", number={"type": "integer"}),
        tool("send", text={"type": "string"}),
        tool("wipe", text={"type": "string"}),
    ]
    return types.ListToolsResult(tools=tools)


async def call_tool(
    context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
) -> types.CallToolResult:
    given = params.arguments or {}
    if params.name == "open":
        text = json.loads((FOLDER / "letters.json").read_text("utf-8"))[given["number"]]
    else:
        with (FOLDER / "done").open("a") as done:
            done.write(f"{params.name} {given['text']}\n")
        text = "done"
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def main() -> None:
    server: Server[Any] = Server("letters", on_list_tools=list_tools, on_call_tool=call_tool)
    options = server.create_initialization_options(NotificationOptions())
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, options)


if __name__ == "__main__":
    asyncio.run(main())
