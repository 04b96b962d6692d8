"""An MCP server that reads and writes files where it may."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lines import serve, tool


def call(name: str, given: dict[str, Any]) -> str:
    path = Path(given["path"])
    if name == "read":
        return path.read_text()
    path.write_text(given["text"] * given.get("times", 1))
    return str(given["text"])


serve("scribe", [tool("read"), tool("write")], call)
