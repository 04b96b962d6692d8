"""OpenAI's Agents SDK: the tools are those of an agent of its own."""

import asyncio
import json
import os

from agents.mcp import MCPServerStreamableHttp


async def main() -> None:
    headers = {"Authorization": f"Bearer {os.environ['VIGIL_TOKEN']}"}
    params = {"url": os.environ["VIGIL_MCP"], "headers": headers, "timeout": 30}
    async with MCPServerStreamableHttp(params, client_session_timeout_seconds=30) as server:
        tools = [tool.name for tool in await server.list_tools()]
        await server.call_tool("memory_save", {"content": os.environ["SAYS"]})
        found = await server.call_tool("memory_recall", {"query": "parrot"})
        print(json.dumps({"tools": tools, "found": str(found)}))


asyncio.run(main())
