"""What is granted is a tool that there is, or one that may come (LOOPS L-8)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest_asyncio

from tests.support.gateway import Gate, assert_problem
from tests.support.stack import running_stack
from vigil.bus.kv import KeyValue
from vigil.contracts import HeldTool, Shelf, Tool, encode

PATH: Final = "/api/grants"
AWAY: Final = {"away": {"command": "nonesuch", "is_enabled": False}}


@pytest_asyncio.fixture
async def gate(tmp_path: Path) -> AsyncIterator[Gate]:
    """A gateway in whose configuration there is a server that is switched off."""
    async with running_stack(tmp_path, services=("gateway",), mcp=AWAY) as stack:
        gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        try:
            yield gate
        finally:
            await gate.close()


def shelf_of(source: str, *names: str, state: str = "connected") -> Shelf:
    tools = tuple(
        Tool(name=name, description="Does it.", input_schema={"type": "object"}, risk="external")
        for name in names
    )
    return Shelf(
        source=source,
        at=datetime.now(UTC),
        tools=tools,
        held=(HeldTool(name=f"{source}__new", digest="b" * 64, pinned=""),),
        facts={"state": state},
    )


async def test_a_tool_that_nobody_offers_is_refused_with_the_one_that_is_near(gate: Gate) -> None:
    """L-8: but of a server that isn't connected nobody knows what it offers."""
    ann, bucket = await gate.person("ann"), KeyValue(gate.admin, "TOOLS")
    early = await ann.post(PATH, json={"tool": "early__bird"})
    assert early.status_code == 201, "no executor has told what there is"
    for shelf in (
        shelf_of("builtin", "shell", "change_settings"),
        shelf_of("wiki", "wiki__lookup"),
        shelf_of("down", state="not connected"),
    ):
        await bucket.put(shelf.source, encode(shelf))
    for tool in (
        "wiki__lookup",
        "wiki__new",
        "wiki__*",
        "down__anything",
        "away__*",
        "away__anything",
        "email_send",
        "change_settings",
    ):
        answer = await ann.post(PATH, json={"tool": tool})
        assert answer.status_code == 201, answer.text
    for tool, refusal in {
        "wiki__lokup": "wiki has no tool 'wiki__lokup'; did you mean wiki__lookup?",
        "wkii__*": "there is no server 'wkii'; did you mean wiki?",
        "other__lookup": "there is no server 'other'; there is: away, down, wiki",
        "email_sent": "there is no tool 'email_sent' that needs leave; did you mean email_send?",
        "lookup": "there is no tool 'lookup' that needs leave; did you mean wiki__lookup?",
        "zzz": "there is no tool 'zzz' that needs leave; there is: ",
    }.items():
        problem = assert_problem(await ann.post(PATH, json={"tool": tool}), 422, "tool")
        assert refusal in problem["detail"]
