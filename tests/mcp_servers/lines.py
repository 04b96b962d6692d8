"""A server over stdio in a few lines of the protocol: the SDK takes a second to import, and tests
start many."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any


def tool(name: str, description: str = "", **properties: Any) -> dict[str, Any]:
    """Return how a tool is offered: with all of these properties, or any where none is named."""
    schema: dict[str, Any] = {"type": "object"}
    if properties:
        schema |= {"properties": properties, "required": list(properties)}
    return {"name": name, "description": description or name, "inputSchema": schema}


def serve(
    name: str, tools: Sequence[dict[str, Any]], call: Callable[[str, dict[str, Any]], str]
) -> None:
    """Answer until stdin ends. What `call` returns is a tool's text, an OSError an error's."""

    def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
        match method:
            case "initialize":
                return {
                    "protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                    "serverInfo": {"name": name, "version": "1"},
                }  # fmt: skip
            case "tools/list":
                return {"tools": tools}
            case "tools/call":
                text = call(params["name"], params.get("arguments") or {})
                return {"content": [{"type": "text", "text": text}]}
        return {}

    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            told: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
            try:
                told["result"] = answer(message["method"], message.get("params", {}))
            except OSError as error:
                told["error"] = {"code": -32000, "message": str(error)}
            print(json.dumps(told), flush=True)
