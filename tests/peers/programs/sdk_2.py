"""The official SDK for Python, of 2026."""

import asyncio
import json
import os

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def main() -> None:
    headers = {"Authorization": f"Bearer {os.environ['VIGIL_TOKEN']}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        url = os.environ["VIGIL_MCP"]
        async with Client(streamable_http_client(url, http_client=http)) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            await client.call_tool("memory_save", {"content": os.environ["SAYS"]})
            found = await client.call_tool("memory_recall", {"query": "parrot"})
            told = {"protocol": client.protocol_version, "tools": tools}
            print(json.dumps(told | {"found": str(found.structured_content)}))


asyncio.run(main())
