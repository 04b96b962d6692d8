"""The official SDK for Python, of 2025, over stdin and stdout of `vigil mcp`."""

import asyncio
import json
import os

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main() -> None:
    named = {name: os.environ[name] for name in ("VIGIL_URL", "VIGIL_TOKEN", "VIGIL_HOME")}
    server = StdioServerParameters(command=os.environ["VIGIL"], args=["mcp"], env=named)
    async with stdio_client(server) as ways, ClientSession(*ways) as session:
        begun = await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        await session.call_tool("memory_save", {"content": os.environ["SAYS"]})
        found = await session.call_tool("memory_recall", {"query": "parrot"})
        told = {"protocol": begun.protocolVersion, "tools": tools}
        print(json.dumps(told | {"found": str(found.structuredContent)}))


asyncio.run(main())
