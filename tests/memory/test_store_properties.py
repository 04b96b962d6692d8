"""Rebuilding equals living through it, and no owner's records touch another's (SPEC M-2, M-9)."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.memory.store import counts
from services.memory.store.fold import Entry
from services.memory.store.places import Place
from services.memory.store.store import Store
from tests.support.examples import up_to
from tests.support.memory_records import (
    ANN,
    BOB,
    T0,
    accessed,
    associated,
    dump,
    edge,
    forgotten,
    ids,
    merged,
    replaced,
    saved,
    undone,
)
from vigil.contracts import MemoryForgotten
from vigil.memory.operations.graph import GetGraph
from vigil.memory.operations.list import ListMemories
from vigil.subjects import Scope

NUMBERS = st.integers(1, 8)
SOME = st.lists(NUMBERS, max_size=4)
SCOPES = st.sampled_from([ANN, BOB])
WEIGHTS = st.sampled_from([0.1, 0.2, 0.3, 0.7, 1.0])
RELATIONS = st.sampled_from(["related_to", "updates"])
WORDS = st.sampled_from(["a cat", "the cats sat", "Привет мир", "猫 です", "🙂", "", "a a a b"])

Make = Callable[[int], Entry]
COUNTED_FROM = 3


@pytest.fixture(autouse=True, scope="module")
def _counted_often() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counts, "COUNTED_FROM", COUNTED_FROM)
        yield


def _saves(draw: Any) -> Make:
    number, scope, words = draw(NUMBERS), draw(SCOPES), draw(WORDS)
    provenance, source = ids(*draw(SOME)), draw(st.sampled_from(["api", "bad"]))
    ends = draw(st.none() | st.just(T0))
    links = tuple(edge(number, other) for other in draw(SOME))
    return lambda seq: saved(
        seq, words, number=number, scope=scope, provenance=provenance, source=source,
        expires_at=ends, edges=links,
    )  # fmt: skip


def _forgets(draw: Any) -> Make:
    numbers, scope = draw(SOME), draw(SCOPES)
    reason = draw(st.sampled_from(["asked", "expired", "decayed"]))
    return lambda seq: forgotten(seq, *numbers, scope=scope, reason=reason)


def _merges(draw: Any) -> Make:
    numbers, scope, number = draw(SOME), draw(SCOPES), draw(st.integers(9, 12))
    return lambda seq: merged(seq, *numbers, number=number, scope=scope, provenance=ids(*numbers))


def _replaces(draw: Any) -> Make:
    numbers, scope, by = draw(SOME), draw(SCOPES), draw(NUMBERS)
    kind = draw(st.sampled_from([{}, {"is_same": False}, {"is_same": False, "is_wider": True}]))
    return lambda seq: replaced(seq, by, *numbers, scope=scope, **kind)


def _undoes(draw: Any) -> Make:
    numbers, scope = draw(st.lists(st.integers(1, 12), max_size=4)), draw(SCOPES)
    return lambda seq: undone(seq, *numbers, scope=scope)


def _associates(draw: Any) -> Make:
    pairs = draw(st.lists(st.tuples(NUMBERS, NUMBERS, WEIGHTS, RELATIONS), max_size=4))
    edges = [edge(a, b, weight, relation=relation) for a, b, weight, relation in pairs]
    scope, through = draw(SCOPES), draw(st.integers(0, 9))
    return lambda seq: associated(seq, *edges, scope=scope, through=through)


def _accesses(draw: Any) -> Make:
    numbers, scope = draw(SOME), draw(SCOPES)
    return lambda seq: accessed(seq, *numbers, scope=scope)


KINDS = (_saves, _saves, _saves, _forgets, _merges, _replaces, _undoes, _associates, _accesses)


@st.composite
def logs(draw: Any) -> list[Entry]:
    """A log of two owners, with gaps; most of it is about memories that are there."""
    log: list[Entry] = []
    seq = 0
    for _ in range(draw(st.integers(1, 25))):
        seq += draw(st.integers(1, 3))
        log.append(draw(st.sampled_from(KINDS))(draw)(seq))
    return log


def run(work: Callable[[Store], Awaitable[Any]]) -> Any:
    """Run something on a new store."""

    async def inside() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            store = await Store.open(Path(folder))
            try:
                return await work(store)
            finally:
                await store.close()

    return asyncio.run(inside())


def lived_through(log: Sequence[Entry]) -> Any:
    async def work(store: Store) -> Any:
        for entry in log:
            await store.apply([entry])
        return await dump(store)

    return run(work)


@up_to(25)
@given(logs(), st.data())
def test_a_rebuild_equals_living_through_it(log: list[Entry], data: st.DataObject) -> None:
    """M-9: to the byte, in one batch or cut anywhere, with parts that come again."""
    expected = lived_through(log)

    async def at_once(store: Store) -> Any:
        await store.apply(log)
        return await dump(store)

    async def cut(store: Store) -> Any:
        done = 0
        while done < len(log):
            size = data.draw(st.integers(1, len(log) - done))
            again = data.draw(st.integers(0, done))
            await store.apply(log[done - again : done + size])
            done += size
        await store.apply(log)
        return await dump(store)

    assert run(at_once) == expected
    assert run(cut) == expected


@up_to(25)
@given(logs())
def test_no_record_reaches_another_owner(log: list[Entry]) -> None:
    """M-2: what ann has is the same with and without bob's records, ids and all."""

    async def of_ann(store: Store, entries: Sequence[Entry]) -> Any:
        await store.apply(entries)
        listed = await store.list(ANN, ListMemories(with_ended=True), T0)
        got = [await store.get(ANN, each.id, T0) for each in listed.memories]
        return listed, got, await store.graph(ANN, GetGraph(), T0)

    def is_anns(entry: Entry) -> bool:
        return Scope(entry.record.agent, entry.record.owner) == ANN

    with_bob = run(lambda store: of_ann(store, log))
    without = run(lambda store: of_ann(store, [entry for entry in log if is_anns(entry)]))
    assert with_bob == without


@up_to(25)
@given(logs())
def test_what_was_asked_to_be_forgotten_never_comes_back(log: list[Entry]) -> None:
    """M-2, M-4: whatever merges, undoes and saves come before and after it."""

    async def work(store: Store) -> None:
        gone: set[tuple[Scope, str]] = set()
        for entry in log:
            record = entry.record
            scope = Scope(record.agent, record.owner)
            if isinstance(record, MemoryForgotten) and record.reason == "asked":
                gone |= {(scope, i) for i in await store.known(scope, record.memory_ids)}
            await store.apply([entry])
            for where, memory in gone:
                assert not await store.known(where, [memory])

    run(work)


@up_to(25)
@given(logs())
def test_full_text_holds_just_what_was_not_forgotten(log: list[Entry]) -> None:
    """M-2, M-9."""

    async def work(store: Store) -> None:
        await store.apply(log)
        found = await dump(store)
        rows = {row[0]: row for row in found["memories"]}
        kept = {num for num, row in rows.items() if "forgotten" not in row}
        assert {row[0] for row in found["features"]} == kept
        indexed = {row[1] for name, words in found.items() if name.startswith("text_")
                   and not name.endswith("sizes") for row in words}  # fmt: skip
        assert indexed == kept

    run(work)


@up_to(25)
@given(logs())
def test_counts_are_of_what_was_not_forgotten(log: list[Entry]) -> None:
    """M-2, M-9: what is kept, and what comes after it, are as if each was counted anew."""

    def count(db: sqlite3.Connection, place: Place) -> tuple[dict[int, int], dict[int, int]]:
        kept = counts.stored(db, place)
        numbers = {token: int(n) for token, n in enumerate(kept.tokens) if n}
        everything = list(counts.tokens_after(db, place, 0))
        anew = Counter(_token(t) for num, t in everything if t and num <= kept.through)
        assert kept.memories == anew.total()
        uncounted = sum(1 for num, _ in everything if num > kept.through)
        assert uncounted < COUNTED_FROM
        return numbers, dict(anew)

    async def work(store: Store) -> None:
        await store.apply(log)
        for scope in await store.scopes():
            place = await store.place(scope)
            assert place is not None
            found, expected = await store.read(partial(count, place=place))
            assert found == expected

    run(work)


def _token(tokens: bytes) -> int:
    return int.from_bytes(tokens, "little")


@up_to(60)
@given(logs(), st.integers(1, 3))
def test_an_undo_in_parts_is_as_one(log: list[Entry], size: int) -> None:
    """M-4: the same stands afterwards; what ended, ended alike."""

    async def work(store: Store, *, is_cut: bool) -> list[tuple[Any, ...]]:
        await store.apply(log)
        plan = await store.plan_undo(ANN, "bad")
        seq = log[-1].seq
        for part in plan.parts(size) if is_cut else [plan]:
            seq += 1
            numbers = (int(one, 16) for one in part.undone)
            await store.apply([undone(seq, *numbers, source="bad")])
        sql = "SELECT num, ended, coalesce(superseded_by, '') <> '' FROM memories ORDER BY num"
        if max((len(family) for family in plan.families), default=0) > size:
            sql = "SELECT num, ended FROM memories ORDER BY num"
        return await store.read(lambda db: db.execute(sql).fetchall())

    whole = run(lambda store: work(store, is_cut=False))
    assert run(lambda store: work(store, is_cut=True)) == whole
