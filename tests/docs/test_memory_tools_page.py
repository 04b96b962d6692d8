"""What memory.md says of the command line and of MCP is what there is."""

from __future__ import annotations

import json
import re
from pathlib import Path

from typer.main import get_command

from vigil.cli.commands import memory
from vigil.memory.operation import operations

PAGE = (Path(__file__).parents[2] / "docs" / "memory.md").read_text("utf-8")


def section(heading: str) -> str:
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def test_every_tool_is_listed_with_its_hint() -> None:
    """P-5"""
    rows = re.findall(
        r"^\| `(\w+)` \| .* \| ?(\w*) ?\|$", section("From other programs: MCP"), re.M
    )
    hints = {
        tool.name: "reads" if tool.is_reading else "destroys" if tool.is_destructive else ""
        for tool in (one.mcp for one in operations().values())
        if tool is not None
    }
    assert dict(rows) == hints


def test_the_examples_for_hosts_are_json() -> None:
    """P-5: as a person copies them."""
    examples = re.findall(r"```json\n(.*?)```", section("From other programs: MCP"), re.S)
    servers = [json.loads(text)["mcpServers"]["vigil"] for text in examples]
    assert servers[0]["args"][0] == "mcp"
    assert servers[1]["url"].partition("?")[0].endswith("/mcp")


def test_every_command_is_shown() -> None:
    """P-2"""
    shown = set(re.findall(r"^    \.venv/bin/vigil memory (\w+)", PAGE, re.M))
    assert shown == set(get_command(memory.app).commands)  # type: ignore[attr-defined]
