"""The same fact saved twice, and one that is another by now (SPEC M-4, M-5, M-9)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from services.memory.store.store import Store
from tests.memory.test_store_fold import changes, standing, view
from tests.support.memories import asking
from tests.support.memory_records import (
    at,
    dump,
    forgotten,
    memory_id,
    replaced,
    saved,
    undone,
)
from tests.support.remembered import NOW, remembered
from tests.support.stack import Stack
from vigil.errors import NotFound
from vigil.memory.answer_text import lines
from vigil.memory.operations.forget import Forget
from vigil.memory.operations.get import Get
from vigil.memory.operations.list import ListMemories
from vigil.memory.operations.maintain import Maintain
from vigil.memory.operations.undo import Undo

MARIGOLD, DAISY, IRIS = (f"The boat is called {name}" for name in ("Marigold", "Daisy", "Iris"))
GATE = "The gate code is 1"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path)
    yield store
    await store.close()


async def test_one_memory_with_two_sources(bare: Stack) -> None:
    """It was stored twice, and stood twice in the bulletin. Reverting either source leaves the
    fact with the other one."""
    await bare.start("memory")
    ann = await asking(bare)
    first = await ann.save(MARIGOLD, source="chat:t1")
    second = await ann.save(f"{MARIGOLD}.", source="mail")
    outside = await ann.save(MARIGOLD, source="web", is_tainted=True)
    (one,) = (await ann.ask(ListMemories())).memories
    assert (one.id, one.source, one.also_from) == (second.id, "mail", ("chat:t1",))
    (hit,) = (await ann.recall("what is the boat called")).hits
    assert hit.memory.id == second.id
    before = (await ann.ask(Get(id=first.id))).memory
    assert (before.ended, before.superseded_by) == ("replaced", second.id)
    reverted = await ann.ask(Undo(source="mail", by="user:ann"))
    assert reverted.restored == tuple(sorted((first.id, outside.id)))
    await ann.ask(Maintain())
    assert [(m.id, m.also_from) for m in (await ann.ask(ListMemories())).memories] == [
        (first.id, ())
    ]
    assert not bare.contexts["memory"].bus.violations


async def test_the_newer_of_two_that_contradict_each_other_comes_first(bare: Stack) -> None:
    """The older was first, 1.98 against 0.34, and nothing said which of them holds."""
    await bare.start("memory")
    ann = await asking(bare)
    old = await ann.save("The locker code is 4711")
    earlier = (await ann.ask(Get(id=old.id))).memory.created_at
    new = await ann.save("The locker code is now 4712")
    await ann.save("The locker code is 9999", is_tainted=True)
    found = [hit.memory for hit in (await ann.recall("what is the locker code")).hits]
    assert [m.id for m in found if not m.is_tainted] == [new.id]
    asked = [hit.memory for hit in (await ann.recall("is the locker code 4711")).hits]
    assert [(m.id, m.ended) for m in asked if not m.is_tainted] == [
        (new.id, None), (old.id, "replaced"),
    ]  # fmt: skip
    (then,) = (await ann.recall("what is the locker code", as_of=earlier)).hits
    assert then.memory.id == old.id
    assert [m.id for m in (await ann.ask(ListMemories())).memories if not m.is_tainted] == [new.id]


async def test_forgetting_a_correction_says_neither_and_undoing_it_says_the_older(
    bare: Stack,
) -> None:
    """A recall showed the older again, which lists and `memory show` called replaced; it isn't
    lost. Over two steps, too, and as of a moment before."""
    await bare.start("memory")
    ann = await asking(bare)
    first, second, third = [
        await ann.save(f"The locker code is {value}") for value in ("4711", "now 4712", "now 4713")
    ]
    for ended, left in ((third, []), (second, []), (first, [])):
        await ann.ask(Forget(ids=(ended.id,), by="user:ann"))
        found = await ann.found("what is the locker code")
        assert (found, await ann.listed()) == (left, left)
    before = await ann.save(GATE)
    after = await ann.save("The gate code is now 2")
    assert await ann.found("what is the gate code 1") == ["The gate code is now 2", GATE]
    await ann.ask(Undo(source=after.id, by="user:ann"))
    assert await ann.found("what is the gate code") == [GATE] == await ann.listed()
    later = await ann.save("The gate code is now 3")
    await ann.ask(Forget(ids=(later.id,), by="user:ann"))
    assert await ann.found("what is the gate code") == [] == await ann.listed()
    assert await ann.found("what is the gate code", with_pruned=True) == [GATE]
    assert (await ann.ask(Get(id=before.id))).memory.superseded_by is None
    await ann.save(GATE)
    assert await ann.found("what is the gate code") == [GATE] == await ann.listed()


async def test_nothing_names_a_correction_that_was_forgotten(bare: Stack) -> None:
    """`memory show`, lists and recalls of an older one gave its id away; what stands is named."""
    await bare.start("memory")
    ann = await asking(bare)
    first, second, third = [
        await ann.save(f"The locker code is {value}") for value in ("4711", "now 4712", "now 4713")
    ]

    async def named() -> list[str | None]:
        got = (await ann.ask(Get(id=first.id))).memory
        listed = (await ann.ask(ListMemories(with_ended=True))).memories
        (same,) = (one for one in listed if one.id == first.id)
        assert got.ended == "replaced" == same.ended
        return [got.superseded_by, same.superseded_by]

    assert await named() == [second.id] * 2
    await ann.ask(Forget(ids=(second.id,), by="user:ann"))
    assert await named() == [third.id] * 2
    await ann.ask(Forget(ids=(third.id,), by="user:ann"))
    assert await named() == [None] * 2
    recalled = await ann.recall("what is the locker code 4711", with_pruned=True)
    told = lines([hit.memory for hit in recalled.hits]).content
    assert f"id {first.id}, replaced]" in told
    assert second.id not in told
    assert third.id not in told


async def test_what_was_saved_before_is_joined_by_the_pass(tmp_path: Path) -> None:
    """Of two replicas at once, or before memories were compared; each once."""
    async with remembered(tmp_path) as ann:
        await ann.save(MARIGOLD, source="chat:t1")
        await ann.save(MARIGOLD, source="chat:t2")
        await ann.save(DAISY, "The tide is high", MARIGOLD.removesuffix("Marigold") + "Daisy")
        done = await ann.maintain(NOW)
        assert (done.replaced, done.message) == (3, "3 memories replaced.")
        found = (await ann.recall("what is the boat called", limit=1)).hits[0].memory
        assert found.id == memory_id(5)
        assert (await ann.maintain(NOW)).replaced == 0


async def test_what_replaces_ends_only_what_stands_and_is_no_better(store: Store) -> None:
    """X-3: also if a record says otherwise; and a repeat changes nothing."""
    await store.apply([saved(1, MARIGOLD), saved(2, DAISY, is_tainted=True), saved(3, IRIS)])
    assert not await changes(store, replaced(4, 2, 1))
    assert not await changes(store, replaced(5, 3, 3))
    assert not await changes(store, replaced(6, 9, 1))
    assert await changes(store, replaced(7, 3, 1, 2, 9, is_same=False))
    assert not await changes(store, replaced(8, 3, 1, 2, is_same=False))
    assert await standing(store) == [3]
    assert await standing(store, as_of=at(6)) == [1, 2, 3]
    assert (await view(store, 1)).superseded_by == memory_id(3)


@pytest.mark.parametrize("undone_first", [1, 2, 3])
async def test_an_undo_brings_back_what_nothing_else_replaces(
    store: Store, undone_first: int
) -> None:
    """M-4: of three names of one boat, one after the other, whichever is undone first."""
    await store.apply([
        saved(1, MARIGOLD), saved(2, DAISY), replaced(3, 2, 1, is_same=False),
        saved(4, IRIS), replaced(5, 4, 2, is_same=False),
    ])  # fmt: skip
    order = {1: (1, 2, 4), 2: (2, 4, 1), 3: (4, 2, 1)}[undone_first]
    expected = {1: ([4], [4], []), 2: ([4], [1], []), 3: ([2], [1], [])}[undone_first]
    for seq, (number, left) in enumerate(zip(order, expected, strict=True), start=6):
        await store.apply([undone(seq, number)])
        assert await standing(store) == left, number


async def test_forgetting_one_forgets_what_says_the_same(store: Store) -> None:
    """M-4: for good, with every trace of its words; what it was before stays as it is."""
    await store.apply([
        saved(1, "The boat is called Sina"), saved(2, MARIGOLD), replaced(3, 2, 1, is_same=False),
        saved(4, MARIGOLD), replaced(5, 4, 2), forgotten(6, 2),
    ])  # fmt: skip
    assert await standing(store, with_ended=True) == [1]
    assert await standing(store) == []
    for number in (2, 4):
        with pytest.raises(NotFound):
            await view(store, number)
    rows: dict[str, list[tuple[Any, ...]]] = await dump(store)
    assert {num for _, _, num in rows["said"]} == {1}
