"""FastMCP's client."""

import asyncio
import json
import os

from fastmcp import Client


async def main() -> None:
    async with Client(os.environ["VIGIL_MCP"], auth=os.environ["VIGIL_TOKEN"]) as client:
        tools = [tool.name for tool in await client.list_tools()]
        await client.call_tool("memory_save", {"content": os.environ["SAYS"]})
        found = await client.call_tool("memory_recall", {"query": "parrot"})
        print(json.dumps({"tools": tools, "found": str(found.structured_content)}))


asyncio.run(main())
