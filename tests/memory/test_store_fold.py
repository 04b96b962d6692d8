"""What each record does, and what it doesn't: the fold of MEMORIES (SPEC M-2 to M-9)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from services.memory.store.fold import Entry
from services.memory.store.store import Store
from tests.support.memory_records import (
    ANN,
    BOB,
    DAY,
    T0,
    accessed,
    associated,
    at,
    dump,
    edge,
    forgotten,
    ids,
    memory_id,
    merged,
    saved,
    undone,
)
from vigil.errors import NotFound
from vigil.memory.operations.graph import GetGraph
from vigil.memory.operations.list import ListMemories
from vigil.memory.questions import MemoryView
from vigil.subjects import Scope

NOW = T0 + DAY


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path)
    yield store
    await store.close()


async def view(store: Store, number: int, scope: Scope = ANN) -> MemoryView:
    return (await store.get(scope, memory_id(number), NOW)).memory


async def standing(
    store: Store, *, as_of: datetime | None = None, with_ended: bool = False, scope: Scope = ANN
) -> list[int]:
    question = ListMemories(as_of=as_of, with_ended=with_ended)
    found = await store.list(scope, question, NOW)
    return sorted(int(each.id, 16) for each in found.memories)


async def changes(store: Store, *entries: Entry) -> bool:
    """Apply records, and tell whether any row but the position differs."""
    before = await dump(store)
    await store.apply(entries)
    after = await dump(store)
    return before | {"meta": []} != after | {"meta": []}


async def test_a_saved_memory_comes_back_whole(store: Store) -> None:
    """M-1: every field, to the microsecond."""
    fields: dict[str, Any] = {
        "type": "decision", "importance": 0.123456789, "source": "cron:daily", "thread": "t1",
        "stability": "volatile", "occurred_at": at(-5), "expires_at": NOW + 9 * DAY,
        "valid_from": at(-10), "valid_to": at(99.123456), "provenance": ("event-1", "event-2"),
        "is_tainted": True,
    }  # fmt: skip
    entry = saved(3, "Ünïcode 🙂 'quote\" \0 NUL", **fields)
    await store.apply([entry])
    found = await view(store, 3)
    for name in entry.record.memory.__struct_fields__:  # type: ignore[union-attr]
        assert getattr(found, name) == getattr(entry.record.memory, name), name  # type: ignore[union-attr]
    assert found.seq == 3
    assert (found.accesses, found.accessed_at, found.ended, found.centrality) == (0, None, None, 0)


async def test_a_save_again_changes_nothing(store: Store) -> None:
    """S-4: nor do the edges that it would have brought."""
    await store.apply([saved(1), saved(2, "first")])
    assert not await changes(store, saved(3, "other", number=2, edges=(edge(2, 1),)))
    await store.apply([forgotten(4, 2)])
    assert not await changes(store, saved(5, "other", number=2))


# ---------------------------------------------------------------- forgetting


async def test_forgotten_is_in_no_answer(store: Store) -> None:
    """M-2, M-4: not about the past either, and not among what has ended."""
    await store.apply([saved(1), saved(2), associated(3, edge(1, 2)), forgotten(4, 1)])
    assert await standing(store) == [2]
    assert await standing(store, as_of=at(3)) == [2]
    assert await standing(store, with_ended=True) == [2]
    with pytest.raises(NotFound):
        await view(store, 1)
    assert (await store.get(ANN, memory_id(2), NOW)).edges == ()
    assert (await store.graph(ANN, GetGraph(), NOW)).nodes == ()
    with pytest.raises(NotFound):
        await store.graph(ANN, GetGraph(id=memory_id(1)), NOW)


async def test_what_is_unknown_or_forgotten_already_is_ignored(store: Store) -> None:
    await store.apply([saved(1), forgotten(2, 1)])
    assert not await changes(store, forgotten(3, 1, 77), forgotten(4, 1, reason="expired"))
    assert not await changes(store, forgotten(5, 1, scope=BOB), undone(6, 1), accessed(7, 1))


async def test_faded_and_expired_can_be_asked_for_as_of_then(store: Store) -> None:
    """M-4, M-6."""
    await store.apply([saved(1), saved(2, expires_at=at(5)), saved(3)])
    await store.apply([forgotten(10, 1, reason="decayed"), forgotten(11, 2, reason="expired")])
    assert await standing(store) == [3]
    assert await standing(store, as_of=at(4)) == [1, 2, 3]
    assert await standing(store, as_of=at(6)) == [1, 3]
    assert await standing(store, as_of=at(2)) == [1, 2]
    assert await standing(store, with_ended=True) == [1, 2, 3]
    found = await view(store, 1)
    assert (found.ended, found.ended_at) == ("decayed", at(10))
    found = await view(store, 2)
    assert (found.ended, found.ended_at) == ("expired", at(5))
    await store.apply([forgotten(12, 1)])
    assert await standing(store, as_of=at(4)) == [2, 3]


async def test_expired_is_not_shown_before_maintenance_comes_by(store: Store) -> None:
    """M-6."""
    await store.apply([saved(1, expires_at=NOW), saved(2, expires_at=NOW + DAY)])
    assert await standing(store) == [2]
    assert await standing(store, as_of=at(3)) == [1, 2]
    found = await view(store, 1)
    assert (found.ended, found.ended_at) == ("expired", NOW)


# ---------------------------------------------------------------- merging


async def test_a_merge_takes_the_place_of_its_members(store: Store) -> None:
    """M-6: they are superseded by it, and stand as of before."""
    await store.apply([saved(n) for n in (1, 2, 3)])
    await store.apply([merged(5, 1, 2, provenance=ids(1, 2))])
    assert await standing(store) == [3, 5]
    assert await standing(store, as_of=at(4)) == [1, 2, 3]
    assert await standing(store, as_of=at(5)) == [3, 5]
    found = await view(store, 1)
    assert (found.ended, found.ended_at, found.superseded_by) == ("merged", at(5), memory_id(5))


@pytest.mark.parametrize(
    "merge",
    [
        merged(9, 1, 2),  # 2 has ended
        merged(9, 1, 77),  # there is none
        merged(9, 1, 3, scope=BOB),
        merged(9, 1, 6),  # of another owner
        merged(9, 1, 3, number=3),  # the summary's id exists
        merged(9, 1, 3, number=2),
        merged(9, 1, 5),  # is merged already
        merged(9),
    ],
)
async def test_a_merge_is_void_unless_all_stand(store: Store, merge: Entry) -> None:
    """M-6: never across owners."""
    await store.apply([saved(n) for n in (1, 2, 3, 4, 5)])
    await store.apply([saved(6, scope=BOB), forgotten(7, 2, reason="decayed"), merged(8, 4, 5)])
    assert not await changes(store, merge)


async def test_forgetting_a_summary_forgets_what_it_contains(store: Store) -> None:
    """M-2: it was made of their very words."""
    await store.apply([saved(n) for n in (1, 2, 3)])
    await store.apply([merged(5, 1, 2), forgotten(6, 5)])
    assert await standing(store, with_ended=True) == [3]
    assert await standing(store, as_of=at(4)) == [3]


async def test_forgetting_a_member_forgets_the_summary(store: Store) -> None:
    """M-2: it has the words of the member in it; the others stand again."""
    await store.apply([saved(n) for n in (1, 2, 3)])
    await store.apply([merged(5, 1, 2, 3), forgotten(6, 2)])
    assert await standing(store) == [1, 3]
    assert await standing(store, with_ended=True) == [1, 3]
    assert (await view(store, 1)).superseded_by is None


async def test_forgetting_reaches_a_merge_that_was_undone(store: Store) -> None:
    """M-2, M-4: its words are still there then, for questions about the past."""
    await store.apply([saved(n) for n in (1, 2, 3)])
    await store.apply([merged(5, 1, 2, 3), undone(6, 5)])
    assert await standing(store) == [1, 2, 3]
    assert await standing(store, with_ended=True) == [1, 2, 3, 5]
    await store.apply([forgotten(7, 2)])
    assert await standing(store) == [1, 3]
    assert await standing(store, with_ended=True) == [1, 3]


# ---------------------------------------------------------------- undoing


async def test_an_undo_ends_what_was_derived_and_restores_what_was_merged(store: Store) -> None:
    """M-4."""
    await store.apply(
        [
            saved(1, source="bad"),
            saved(2),
            saved(3, provenance=(memory_id(1), "event")),
            saved(4, provenance=ids(2)),
            merged(5, 2, 3),
        ]
    )
    plan = await store.plan_undo(ANN, "bad")
    assert (plan.undone, plan.restored) == (ids(1, 3, 5), ids(2))
    await store.apply([undone(6, 1, 3, 5, source="bad", restored=(2,))])
    assert await standing(store) == [2, 4]
    assert await standing(store, as_of=at(4)) == [1, 2, 3, 4]
    assert (await view(store, 5)).ended == "undone"
    found = await view(store, 3)
    assert (found.ended, found.ended_at) == ("undone", at(5)), "it had ended before"


async def test_an_undo_reaches_what_came_after_it_was_planned(store: Store) -> None:
    """M-4: the fold decides by what is there when the record comes."""
    await store.apply([saved(1, source="bad"), saved(2), saved(3)])
    late = [saved(4, provenance=ids(1)), merged(5, 1, 2), saved(6, provenance=ids(5))]
    await store.apply([*late, undone(7, 1, source="bad")])
    assert await standing(store) == [2, 3]


async def test_an_undone_memory_is_not_restored_by_another_undo(store: Store) -> None:
    """M-4: 1 is undone itself, so undoing its summary doesn't bring it back."""
    await store.apply([saved(1), saved(2), merged(3, 1, 2), undone(4, 1)])
    assert await standing(store) == [2]
    await store.apply([undone(5, 3)])
    assert await standing(store) == [2]


@pytest.mark.parametrize(("source", "expected"), [("chat:t1", (1, 3)), ("event-9", (3,)), ("", ())])
async def test_what_can_be_undone(store: Store, source: str, expected: tuple[int, ...]) -> None:
    """M-4: a source, an event that memories were made of, or a memory."""
    await store.apply(
        [
            saved(1, source="chat:t1"),
            saved(2),
            saved(3, provenance=("event-9", memory_id(1))),
            saved(4, source="chat:t1", scope=BOB),
            saved(5, source="chat:t1"),
            saved(6, source="chat:t1"),
            forgotten(7, 5),
            undone(8, 6),
        ]
    )
    assert (await store.plan_undo(ANN, source)).undone == ids(*expected)
    assert (await store.plan_undo(ANN, memory_id(2))).undone == ids(2)
    assert (await store.plan_undo(Scope("vigil", "nobody"), source)).undone == ()


async def test_what_was_forgotten_leads_to_what_was_made_of_it(store: Store) -> None:
    """M-4: forgetting the words of a bad source doesn't save what was concluded from them."""
    await store.apply([saved(1, source="bad"), saved(2, provenance=ids(1)), forgotten(3, 1)])
    plan = await store.plan_undo(ANN, "bad")
    assert plan.undone == ids(2)


# ---------------------------------------------------------------- associations


async def test_edges(store: Store) -> None:
    """M-1: the same again replaces the weight; both ends have to be there."""
    await store.apply([saved(1), saved(2), saved(3, scope=BOB), saved(4, edges=(edge(4, 1, 0.9),))])
    assert not await changes(
        store,
        associated(5, edge(1, 1), edge(1, 77), edge(1, 3)),
        associated(6, edge(1, 2), scope=BOB),
        associated(7, edge(1, 2), scope=Scope("vigil", "nobody")),
    )
    await store.apply([associated(8, edge(1, 2, 0.2), edge(1, 2, 0.3, relation="updates"))])
    await store.apply([associated(9, edge(1, 2, 0.4))])
    got = await store.get(ANN, memory_id(1), NOW)
    assert [(e.weight, e.relation) for e in got.edges] == [
        (0.9, "related_to"), (0.4, "related_to"), (0.3, "updates"),
    ]  # fmt: skip
    assert got.memory.centrality == 1.6
    assert (await view(store, 2)).centrality == 0.7


async def test_centrality_counts_what_stands(store: Store) -> None:
    """M-7: edges of what has ended are kept, and count again when it is restored."""
    await store.apply([saved(1), saved(2), saved(3), associated(4, edge(1, 2), edge(3, 1, 0.25))])
    await store.apply([merged(5, 2)])
    assert (await view(store, 1)).centrality == 0.25
    assert (await view(store, 2)).centrality == 0
    assert len((await store.get(ANN, memory_id(1), NOW)).edges) == 1
    await store.apply([undone(6, 5)])
    assert (await view(store, 1)).centrality == 0.75


async def test_how_far_the_pass_got_never_goes_back(store: Store) -> None:
    """M-5."""
    await store.apply([saved(1), associated(2, through=9), associated(3, through=5), associated(4)])
    assert (await dump(store))["scopes"] == [(1, "vigil", "ann", 9, 1)]


# ---------------------------------------------------------------- accesses


async def test_accesses(store: Store) -> None:
    """M-3: each counts once for a record, and the latest time stays, whatever their order."""
    await store.apply([saved(1), saved(2), accessed(9, 1, 1, 2, 77)])
    late = accessed(10, 1)
    early = Entry(11, accessed(5, 1).record)
    await store.apply([late, early])
    found = await view(store, 1)
    assert (found.accesses, found.accessed_at) == (3, at(10))
    assert (await view(store, 2)).accesses == 1
    assert await store.count_changed(2) == 0, "the vector index need not know"
