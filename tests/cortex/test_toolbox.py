"""The tools that the executor offers, as the cortex takes them in (SPEC X-1, RELIABILITY S12)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from services.cortex.core.context.history import memorable, swayed
from services.cortex.core.draft.chunk import Chunk
from services.cortex.core.draft.kinds import profile_of
from services.cortex.thought.toolbox import BYTES_MAX, TOOLS_MAX, Toolbox
from tests.support.stack import running_broker, settings_of
from vigil.bus.bus import Bus
from vigil.bus.kv import KeyValue
from vigil.contracts import Row, Shelf, TextBlock, Tool, encode
from vigil.local.home import ensure_home
from vigil.settings.credentials import load

NOW = datetime(2026, 1, 5, tzinfo=UTC)


def tool(name: str, **of: Any) -> Tool:
    schema = of.pop("schema", {})
    return Tool(name=name, description="", input_schema=schema, profiles=("channel",), **of)


def shelf(source: str, *names: str) -> bytes:
    return encode(Shelf(source=source, at=NOW, tools=tuple(map(tool, names))))


def test_a_source_offers_only_what_is_its_own() -> None:
    """S12: no server takes another's name, or that of a tool of ours."""
    toolbox = Toolbox()
    toolbox.on_change("builtin", shelf("builtin", "shell", "memory_save", "box__x"))
    toolbox.on_change("box", shelf("box", "box__open", "shell", "other__open", "box__a b", "box__" +
                                   "x" * 100))  # fmt: skip
    assert list(toolbox.tools) == ["shell", "box__open"]
    specs = toolbox.offered(profile_of("channel")).all
    assert [spec.name for spec in specs if spec.name in toolbox.tools] == ["box__open", "shell"]
    assert all(spec.input_schema["type"] == "object" for spec in specs)
    assert "shell" not in [spec.name for spec in toolbox.offered(profile_of("branch")).all]


def test_the_order_in_which_a_source_lists_its_tools_does_not_matter() -> None:
    """L-23: what comes first in a request is the same bytes, or nothing after it is cached."""
    shown = []
    for names in (("box__a", "box__b"), ("box__b", "box__a")):
        toolbox = Toolbox()
        toolbox.on_change("box", shelf("box", *names))
        shown.append(toolbox.offered(profile_of("channel")).all)
    assert shown[0] == shown[1]


def test_what_a_source_takes_back_is_gone() -> None:
    toolbox = Toolbox()
    before = toolbox.tools
    toolbox.on_change("box", shelf("box", "box__open"))
    assert before == {}, "a decision keeps what it was made with"
    toolbox.on_change("box", None)
    assert toolbox.tools == {}
    toolbox.on_change("box", shelf("box", "box__open"))
    toolbox.on_change("box", b"not a shelf")
    assert toolbox.tools == {}


def test_there_is_room_for_so_many() -> None:
    """I-2: whatever a server lists, requests stay of a size that a model takes."""
    toolbox = Toolbox()
    toolbox.on_change("builtin", shelf("builtin", "shell"))
    toolbox.on_change("a", shelf("a", *(f"a__{n}" for n in range(1000))))
    assert len(toolbox.tools) == TOOLS_MAX
    assert "shell" in toolbox.tools
    large = tool("a__large", schema={"description": "x" * BYTES_MAX})
    toolbox.on_change("a", encode(Shelf(source="a", at=NOW, tools=(large, tool("a__small")))))
    assert list(toolbox.tools) == ["shell", "a__small"]


async def test_it_follows_the_bucket(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    ensure_home(settings)
    async with running_broker(tmp_path) as broker:
        buses = [
            await Bus.connect(broker.url, role=role, seed=load(settings.credentials, role))
            for role in ("executor", "cortex")
        ]
        bucket = KeyValue(buses[0], "TOOLS")
        await bucket.put("builtin", shelf("builtin", "shell"))
        toolbox = await Toolbox.watch(buses[1])
        assert list(toolbox.tools) == ["shell"]
        await bucket.put("box", shelf("box", "box__open"))
        async with asyncio.timeout(10):
            while "box__open" not in toolbox.tools:
                await asyncio.sleep(0.01)
        await toolbox.close()
        for bus in buses:
            await bus.close()


def test_of_an_exchange_beside_outside_content_memory_is_offered_the_persons_words() -> None:
    """X-3, M: what a model said that had read it may be what it was told to say."""
    rows = (
        Row(role="user", source="person", at=NOW, blocks=(TextBlock(text="I like tea."),)),
        Row(role="assistant", source="agent", at=NOW, blocks=(TextBlock(text="Noted."),)),
    )
    clean = Chunk(seq=1, rows=rows, tokens=1)
    beside = Chunk(seq=2, rows=rows, tokens=1, is_swayed=True)
    tainted = Chunk(seq=3, rows=rows, tokens=1, is_tainted=True, is_swayed=True)
    assert memorable(clean) == rows
    assert memorable(beside) == rows[:1]
    assert memorable(tainted) == rows, "saved with the mark"
    assert [swayed([chunk]) for chunk in (clean, beside, tainted)] == [False, True, True]
