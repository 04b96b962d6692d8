"""LangChain's adapters: the tools are LangChain's then."""

import asyncio
import json
import os

from langchain_mcp_adapters.client import MultiServerMCPClient


async def main() -> None:
    headers = {"Authorization": f"Bearer {os.environ['VIGIL_TOKEN']}"}
    where = {"transport": "streamable_http", "url": os.environ["VIGIL_MCP"], "headers": headers}
    tools = {tool.name: tool for tool in await MultiServerMCPClient({"vigil": where}).get_tools()}
    await tools["memory_save"].ainvoke({"content": os.environ["SAYS"]})
    found = await tools["memory_recall"].ainvoke({"query": "parrot"})
    print(json.dumps({"tools": list(tools), "found": str(found)}))


asyncio.run(main())
