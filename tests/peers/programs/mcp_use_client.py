"""mcp-use."""

import asyncio
import json
import os

from mcp_use import MCPClient


async def main() -> None:
    headers = {"Authorization": f"Bearer {os.environ['VIGIL_TOKEN']}"}
    where = {"url": os.environ["VIGIL_MCP"], "headers": headers}
    client = MCPClient.from_dict({"mcpServers": {"vigil": where}})
    try:
        session = await client.create_session("vigil")
        tools = [tool.name for tool in await session.list_tools()]
        await session.call_tool("memory_save", {"content": os.environ["SAYS"]})
        found = await session.call_tool("memory_recall", {"query": "parrot"})
        print(json.dumps({"tools": tools, "found": str(found)}))
    finally:
        await client.close_all_sessions()


asyncio.run(main())
