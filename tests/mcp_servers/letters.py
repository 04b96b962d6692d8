"""An MCP server with letters that anybody may have written, and two tools that leave traces.

Started by tests, in the sandbox: ``letters.py FOLDER``. Reads ``FOLDER/letters.json``; each call of
`send` and `wipe` adds a line to ``FOLDER/done``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from lines import serve, tool

FOLDER = Path(sys.argv[1])
TOOLS = [
    tool("open", number={"type": "integer"}),
    tool("send", text={"type": "string"}),
    tool("wipe", text={"type": "string"}),
]


def call(name: str, given: dict[str, Any]) -> str:
    if name == "open":
        letters = json.loads((FOLDER / "letters.json").read_text("utf-8"))
        return str(letters[given["number"]])
    with (FOLDER / "done").open("a") as done:
        done.write(f"{name} {given['text']}\n")
    return "done"


serve("letters", TOOLS, call)
