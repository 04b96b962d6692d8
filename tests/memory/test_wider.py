"""What one memory says, and another says with more (SPEC M-4, M-5, M-9)."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from services.memory.store import likeness
from services.memory.store.fold import Entry
from services.memory.store.store import FILE, Store
from tests.memory.test_store_fold import changes, standing, view
from tests.support.memories import Asking, asking, records
from tests.support.memory_records import (
    ANN,
    WITHOUT_LENGTHS,
    dump,
    forgotten,
    memory_id,
    replaced,
    saved,
    undone,
)
from tests.support.remembered import NOW, remembered
from tests.support.stack import Stack
from vigil.memory.operations.forget import Forget
from vigil.memory.operations.get import Get
from vigil.memory.operations.list import ListMemories
from vigil.memory.operations.maintain import Maintain
from vigil.memory.operations.undo import Undo

TEA, TEA_AND_YORK = "Ann likes tea", "Ann likes tea. She lives in York"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path)
    yield store
    await store.close()


async def told(ann: Asking) -> list[tuple[str, tuple[str, ...]]]:
    """Return what stands, with its other sources, after a pass that may join more."""
    await ann.ask(Maintain())
    listed = (await ann.ask(ListMemories())).memories
    return sorted((one.id, one.also_from) for one in listed)


async def test_what_says_more_stands_with_both_sources(bare: Stack) -> None:
    """Both stood, and a search showed the one behind the other. Undoing or forgetting either
    leaves what the other says."""
    await bare.start("memory")
    ann = await asking(bare)
    tea = await ann.save(TEA, source="chat:t1")
    more = await ann.save(TEA_AND_YORK, source="mail")
    assert await told(ann) == [(more.id, ("chat:t1",))]
    assert await ann.found("what does Ann like") == [TEA_AND_YORK]
    before = (await ann.ask(Get(id=tea.id))).memory
    assert (before.ended, before.superseded_by) == ("replaced", more.id)
    assert (await ann.ask(Get(id=more.id))).edges == (), "it isn't how it was before"
    then = {"as_of": before.ended_at - timedelta(microseconds=1)}
    assert sorted(await ann.listed(**then)) == [TEA, TEA_AND_YORK]
    assert set(await ann.found("what does Ann like", **then)) == {TEA, TEA_AND_YORK}

    reverted = await ann.ask(Undo(source="mail", by="user:ann"))
    assert reverted.restored == (tea.id,)
    assert await told(ann) == [(tea.id, ())]
    again = await ann.save(TEA_AND_YORK, source="mail")
    assert await told(ann) == [(again.id, ("chat:t1",))]
    await ann.ask(Undo(source="chat:t1", by="user:ann"))
    assert await told(ann) == [(again.id, ())]

    late = await ann.save(f"{TEA}.", source="chat:t2")
    assert await told(ann) == [(again.id, ("chat:t2",))]
    await ann.ask(Forget(ids=(late.id,), by="user:ann"))
    assert await told(ann) == [(again.id, ())]
    last = await ann.save(TEA, source="chat:t3")
    assert await told(ann) == [(again.id, ("chat:t3",))]
    await ann.ask(Forget(ids=(again.id,), by="user:ann"))
    assert await told(ann) == [(last.id, ())]
    assert await ann.found("what does Ann like") == [TEA]
    assert not bare.contexts["memory"].bus.violations


async def test_a_newer_value_stands_beside_what_says_something_else_too(bare: Stack) -> None:
    """What Ann likes was gone from every list once the code had changed."""
    await bare.start("memory")
    ann = await asking(bare)
    code = await ann.save("The locker code is 4711", source="chat:t1")
    both = await ann.save("The locker code is 4711. Ann likes tea", source="mail")
    new = await ann.save("The locker code is now 4712")
    (edge,) = (await ann.ask(Get(id=new.id))).edges
    assert (edge.from_id, edge.to_id, edge.relation) == (new.id, both.id, "updates")
    assert await told(ann) == sorted([(both.id, ("chat:t1",)), (new.id, ())])
    (hit,) = (await ann.recall("what is the locker code")).hits
    assert hit.memory.id == new.id
    assert "The locker code is 4711. Ann likes tea" in await ann.found("what does Ann like")
    assert (await ann.ask(Get(id=code.id))).memory.superseded_by == both.id
    written = await records(ann.bus)
    await ann.ask(Maintain())
    assert await records(ann.bus) == written, "a pass finds nothing more"


async def test_what_came_from_outside_is_in_none_of_the_persons_own(tmp_path: Path) -> None:
    """X-3: neither way, whichever was saved first."""
    async with remembered(tmp_path) as ann:
        await ann.save(TEA, is_tainted=True)
        (own,) = await ann.save(TEA_AND_YORK)
        await ann.save("Bob has a dog")
        await ann.save("Bob has a dog. He lives in York", is_tainted=True)
        assert (await ann.maintain(NOW)).replaced == 0
        (outside,) = await ann.save(TEA_AND_YORK + ".", is_tainted=True)
        await ann.maintain(NOW)
        assert (await view(ann.store, int(outside, 16))).superseded_by == own
        assert await standing(ann.store) == [2, 3, 4]
        assert (await view(ann.store, 2)).also_from == ()
        await ann.apply(undone, int(outside, 16))
        assert await standing(ann.store) == [1, 2, 3, 4], "behind the one from outside, not own"


async def test_a_record_joins_no_trusted_with_an_untrusted_one(store: Store) -> None:
    """X-3: also if it says otherwise."""
    await store.apply([saved(1, TEA, is_tainted=True), saved(2, TEA_AND_YORK), saved(3, TEA)])
    wider = {"is_same": False, "is_wider": True}
    assert not await changes(store, replaced(4, 2, 1, **wider))
    assert not await changes(store, replaced(5, 1, 2, **wider))
    assert await changes(store, replaced(6, 2, 3, **wider))
    assert not await changes(store, replaced(7, 2, 3, **wider))
    assert await standing(store) == [1, 2]


@pytest.mark.parametrize(
    ("gone", "left", "sources", "hidden"),
    [
        (forgotten(9, 1), [4], (), {1, 2}),  # with what says the same
        (forgotten(9, 2), [4], (), {1, 2}),
        (forgotten(9, 4), [2], ("a",), {4}),
        (forgotten(9, 2, 4), [], (), {1, 2, 4}),
        (undone(9, 1), [4], ("b",), set()),
        (undone(9, 2), [4], ("a",), set()),
        (undone(9, 4), [2], ("a",), set()),
        (undone(9, 4, 2), [1], (), set()),
        (forgotten(9, 4, reason="expired"), [], (), set()),
    ],
)
async def test_what_is_left_of_two_that_say_the_same_behind_a_wider_one(
    store: Store, gone: Entry, left: list[int], sources: tuple[str, ...], hidden: set[int]
) -> None:
    """M-4: 2 stood for 1, and 4 for both."""
    await store.apply([
        saved(1, TEA, source="a"), saved(2, TEA, source="b"), replaced(3, 2, 1),
        saved(4, TEA_AND_YORK, source="c"), replaced(5, 4, 2, is_same=False, is_wider=True),
    ])  # fmt: skip
    assert (await view(store, 4)).also_from == ("a", "b")
    await store.apply([gone])
    assert await standing(store) == left
    known = await store.known(ANN, [memory_id(number) for number in (1, 2, 4)])
    assert {int(one, 16) for one in known} == {1, 2, 4} - hidden
    assert [(await view(store, number)).also_from for number in left] == [sources] * len(left)


async def test_what_has_changed_since_stays_behind_how_it_is_now(store: Store) -> None:
    """M-4: forgetting the wider one brings nothing back for which another one stands."""
    await store.apply([
        saved(1, TEA), saved(2, TEA_AND_YORK), replaced(3, 2, 1, is_same=False, is_wider=True),
        saved(4, "Ann likes rum now"), replaced(5, 4, 2, is_same=False), forgotten(6, 2),
    ])  # fmt: skip
    assert await standing(store) == [4]
    assert (await view(store, 1)).superseded_by == memory_id(4)
    await store.apply([undone(7, 4)])
    assert await standing(store) == [1]


async def test_what_is_stored_already_is_found_by_its_sentences(tmp_path: Path) -> None:
    """A file from before is brought up to date, and the next pass joins what it holds."""
    async with remembered(tmp_path) as ann:
        await ann.save(TEA, TEA, TEA_AND_YORK)
        await ann.apply(replaced, 2, 1)
        expected = await dump(ann.store)
    (file,) = tmp_path.rglob(FILE)
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.executescript(
            "ALTER TABLE replaced DROP COLUMN is_wider; PRAGMA user_version = 4;"
            " DELETE FROM said WHERE num = 3 AND key IN (SELECT key FROM said WHERE num <> 3);"
        )
        db.executescript(WITHOUT_LENGTHS)
        assert db.execute("SELECT count(*) FROM said WHERE num = 3").fetchone() < (3,)
    store = await Store.open(file.parent)
    assert await dump(store) == expected
    place = await store.place(ANN)
    assert place is not None
    joined = await store.read(lambda db: likeness.of_all(db, place, 0, NOW))
    await store.close()
    assert [(one.by_id, one.memory_ids, one.is_wider) for one in joined.found] == [
        (memory_id(3), (memory_id(2),), True)
    ]
