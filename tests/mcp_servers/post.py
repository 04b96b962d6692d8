"""An MCP server that sends mail: each call of `send` adds a line to ``FOLDER/sent``.

Started by tests, in the sandbox: ``post.py FOLDER``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from lines import serve, tool

FOLDER = Path(sys.argv[1])
FIELDS = ("to", "subject", "body")


def call(_name: str, given: dict[str, Any]) -> str:
    with (FOLDER / "sent").open("a") as sent:
        sent.write(json.dumps(given) + "\n")
    return "sent"


serve("post", [tool("send", "Send a mail.", **{one: {"type": "string"} for one in FIELDS})], call)
