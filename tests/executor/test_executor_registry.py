"""What the executor offers: by name, and published for the cortex and for people to see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from services.executor.sources import BUILTIN
from services.executor.tools.registry import TOO_LARGE, Registry
from tests.support import executing
from tests.support.executing import SOURCE, Counting, call, session_of, tool_of
from tests.support.memories import until
from tests.support.stack import Stack
from vigil.bus.bus import Bus
from vigil.bus.kv import KeyValue
from vigil.clock import SystemClock
from vigil.contracts import Shelf, Tool, decode_shelf, encode
from vigil.errors import InvalidInput


class Named(Counting):
    """A source with a name of its own."""

    def __init__(self, home: Path, name: str, *tools: Tool) -> None:
        super().__init__(home, *tools)
        self._name = name

    @property
    def shelf(self) -> Shelf:
        return Shelf(source=self._name, at=super().shelf.at, tools=self.tools)


@asynccontextmanager
async def publishing(bus: Bus, *expected: str) -> AsyncIterator[Registry]:
    registry = Registry(bus, SystemClock())
    task = asyncio.create_task(registry.run(expected))
    try:
        yield registry
    finally:
        task.cancel()


async def shelf_of(bus: Bus, name: str) -> Shelf | None:
    entry = await KeyValue(bus, "TOOLS").get(name)
    return None if entry is None else decode_shelf(entry.value)


async def test_what_a_source_offers_is_published(stack: Stack) -> None:
    """X-1: with the executor's own tools; health tells of them."""
    bus = await stack.bus("cortex")
    await until_published(bus, SOURCE)
    shelf = await shelf_of(bus, SOURCE)
    assert shelf is not None
    assert [tool.name for tool in shelf.tools][:2] == ["count", "again"]
    assert await shelf_of(bus, BUILTIN) is not None
    facts = stack.contexts["executor"].facts["sources"][SOURCE]
    assert (facts["tools"], facts["kind"]) == (len(shelf.tools), "test")


async def until_published(bus: Bus, name: str) -> None:
    async def is_there() -> bool:
        return await shelf_of(bus, name) is not None

    await until(is_there, f"{name} was published")


async def test_a_change_is_published_and_used_at_once(stack: Stack) -> None:
    """X-1: hot: what is added can be called, what is gone is answered as unknown."""
    bus, session = await stack.bus("admin"), await session_of(stack)
    source = executing.made[-1]
    registry = executing.registries[-1]
    source.tools = (tool_of("fresh"),)
    registry.set(source)
    one, gone = call("fresh", 1), call("count", 2)
    await session.turn(one, gone)
    assert not (await session.result(one)).payload.is_error
    assert "no tool 'count'" in (await session.result(gone)).payload.content
    await registry.published()
    shelf = await shelf_of(bus, SOURCE)
    assert shelf is not None
    assert [tool.name for tool in shelf.tools] == ["fresh"]
    registry.remove(SOURCE)
    registry.remove(SOURCE)
    await registry.published()
    assert await shelf_of(bus, SOURCE) is None
    assert registry.find("fresh") is None


async def test_a_shelf_of_an_earlier_configuration_is_removed(bare: Stack, tmp_path: Path) -> None:
    """X-1: a server that is no longer configured offers nothing; one that may come back does."""
    bus = await bare.bus("admin")
    for name in ("old", "slow"):
        shelf = Named(tmp_path, name).shelf
        await KeyValue(bus, "TOOLS").put(name, encode(shelf))
    async with publishing(bus, "slow", "new") as registry:
        registry.set(Named(tmp_path, "new"))
        await registry.published()
    assert await shelf_of(bus, "old") is None
    assert await shelf_of(bus, "slow") is not None
    assert await shelf_of(bus, "new") is not None


async def test_what_stands_there_already_is_not_written_again(bare: Stack, tmp_path: Path) -> None:
    """X-1: replicas that are configured alike don't write over each other."""
    bus = await bare.bus("admin")
    for _ in range(3):
        async with publishing(bus) as registry:
            registry.set(Named(tmp_path, "one"))
            await registry.published()
    entry = await KeyValue(bus, "TOOLS").get("one")
    assert entry is not None
    assert entry.revision == 1


async def test_of_equal_names_the_first_counts(bare: Stack, tmp_path: Path) -> None:
    """X-1: a server can't put itself in the place of a tool that is there."""
    bus = await bare.bus("admin")
    first, second = (Named(tmp_path, name, tool_of("shell")) for name in ("builtin", "evil"))
    registry = Registry(bus, SystemClock())
    registry.set(first)
    registry.set(second)
    registry.set(first)
    found = registry.find("shell")
    assert found is not None
    assert found[1] is first
    registry.remove("builtin")
    found = registry.find("shell")
    assert found is not None
    assert found[1] is second


async def test_a_shelf_that_is_too_large_offers_nothing(bare: Stack, tmp_path: Path) -> None:
    """X-6: and says so, and the other sources are published all the same."""
    bus = await bare.bus("admin")
    huge = tool_of("huge", description="x" * 1_100_000)
    async with publishing(bus) as registry:
        registry.set(Named(tmp_path, "large", huge))
        registry.set(Named(tmp_path, "small"))
        await registry.published()
    large = await shelf_of(bus, "large")
    assert large is not None
    assert (large.tools, large.problem) == ((), TOO_LARGE)
    small = await shelf_of(bus, "small")
    assert small is not None
    assert small.tools


async def test_a_source_whose_name_is_no_key_is_refused(bare: Stack, tmp_path: Path) -> None:
    """RELIABILITY S4."""
    registry = Registry(await bare.bus("admin"), SystemClock())
    for name in ("*", "a.b", "", "a b", "x" * 65):
        with pytest.raises(InvalidInput):
            registry.set(Named(tmp_path, name))
