"""A server over stdio that reads and writes files where it may, in a few lines of the protocol."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

TOOLS = [
    {"name": name, "description": name, "inputSchema": {"type": "object"}}
    for name in ("read", "write")
]


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "scribe", "version": "1"},
            }  # fmt: skip
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            arguments = params["arguments"]
            path = Path(arguments["path"])
            if params["name"] == "write":
                path.write_text(arguments["text"] * arguments.get("times", 1))
                return {"content": [{"type": "text", "text": arguments["text"]}]}
            return {"content": [{"type": "text", "text": path.read_text()}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        told = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            told["result"] = answer(message["method"], message.get("params", {}))
        except OSError as error:
            told["error"] = {"code": -32000, "message": str(error)}
        print(json.dumps(told), flush=True)
