"""Pydantic AI: an agent of its own, whose model is one that calls each tool once."""

import asyncio
import json
import os

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

ASKED = [
    ("memory_save", {"content": os.environ["SAYS"]}),
    ("memory_recall", {"query": "parrot"}),
]
TOLD = {}


def think(messages, info):
    TOLD["tools"] = [tool.name for tool in info.function_tools]
    results = [p for m in messages for p in m.parts if p.part_kind == "tool-return"]
    if len(results) < len(ASKED):
        name, given = ASKED[len(results)]
        return ModelResponse(parts=[ToolCallPart(name, given)])
    TOLD["found"] = str(results[-1].content)
    return ModelResponse(parts=[TextPart("Done.")])


async def main() -> None:
    headers = {"Authorization": f"Bearer {os.environ['VIGIL_TOKEN']}"}
    tools = MCPToolset(os.environ["VIGIL_MCP"], headers=headers)
    await Agent(FunctionModel(think), toolsets=[tools]).run("Save it, and look it up.")
    print(json.dumps(TOLD))


asyncio.run(main())
