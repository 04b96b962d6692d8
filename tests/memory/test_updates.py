"""Recall of what something newer updates (SPEC M-5, issue 16)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.memory_records import associated, edge, forgotten
from tests.support.remembered import MINUTE, NOW, Remembered, remembered

SMALL_TALK = [f"Noa: that is a nice thought number {n}, tell me more" for n in range(9)]


@pytest.fixture
async def ann(tmp_path: Path) -> AsyncIterator[Remembered]:
    async with remembered(tmp_path) as found:
        yield found


async def _boats(ann: Remembered) -> list[str]:
    """Three names of one boat, each updating the one before."""
    names = ["The boat is called Marigold", "The boat is called Daisy now", "It is called Iris now"]
    ids = await ann.save(*names, *SMALL_TALK)
    for older in (1, 2):
        await ann.apply(associated, edge(older + 1, older, 1.0, relation="updates"))
    return ids


async def test_what_was_updated_gives_its_place_to_the_newest(ann: Remembered) -> None:
    """Issue 16: over two steps; the newest needn't have a word of the question."""
    ids = await _boats(ann)
    query = "what is the boat called"
    assert (await ann.recall(query, limit=3)).hits[0].memory.id == ids[2]
    assert await ann.found(query, limit=1, as_of=NOW - timedelta(days=1) + 2 * MINUTE) == [
        "The boat is called Daisy now"
    ]


async def test_what_was_updated_is_shown_if_it_alone_has_what_is_asked(ann: Remembered) -> None:
    """Issue 16, 19: near enough for the pass to say that one updates the other, and both matter."""
    await ann.save("Invoice 4711 was paid late", "Invoice 4712 was paid late", *SMALL_TALK)
    await ann.apply(associated, edge(2, 1, 1.0, relation="updates"))
    assert sorted(await ann.found("when was invoice 4711 paid", limit=2)) == [
        "Invoice 4711 was paid late", "Invoice 4712 was paid late",
    ]  # fmt: skip
    assert (await ann.found("when was the invoice paid", limit=1)) == ["Invoice 4712 was paid late"]
    found = await ann.found("when was the invoice paid", limit=5)
    assert "Invoice 4711 was paid late" not in found


async def test_updates_in_a_circle_or_forgotten_resolve_to_what_stands(ann: Remembered) -> None:
    ids = await _boats(ann)
    await ann.apply(associated, edge(1, 3, 1.0, relation="updates"))
    assert (await ann.recall("boat called", limit=1)).hits[0].memory.id == ids[2]
    await ann.apply(forgotten, 3)
    assert await ann.found("boat called", limit=1) == ["The boat is called Daisy now"]
