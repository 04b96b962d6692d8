"""Decay, pruning, merging, associating, undoing: the pure part (SPEC M-4 to M-7)."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.memory.rules import decide
from services.memory.rules.decide import Associable, Kept, associate, decayed, prunable
from services.memory.rules.instants import DAY as DAY_MICROS
from services.memory.rules.instants import instant, micros
from services.memory.rules.merge import merges
from tests.support.memory_records import DAY, T0, ids, memory, memory_id
from vigil.contracts import IMPORTANCE, Memory
from vigil.memory.questions import CONTENT_BYTES_MAX

NOW = T0 + 100 * DAY
instants = st.integers(-3000 * DAY_MICROS, 2000 * DAY_MICROS).map(
    lambda value: T0 + timedelta(microseconds=value)
)


# ---------------------------------------------------------------- decay


@pytest.mark.parametrize(
    ("age_days", "accessed_days_ago", "share"),
    [
        (0, None, 1.1),  # new: counts as accessed when it was made
        (2, None, 0.9 * 1.1),
        (7, None, 0.65),
        (10, None, 0.5),
        (10, 1, 0.5 * 1.1),
        (20, 7, 0.5),
        (20, 6.99, 0.5 * 1.1),
        (30, None, 0.5),
        (30.01, None, 0.5 * 0.9),
        (300, 31, 0.5 * 0.9),
        (300, 3, 0.5 * 1.1),
    ],
)
def test_decay(age_days: float, accessed_days_ago: float | None, share: float) -> None:
    """M-7: a function of when it was saved, when it was accessed, and now."""
    accessed = None if accessed_days_ago is None else NOW - accessed_days_ago * DAY
    left = decayed(0.6, "fact", NOW - age_days * DAY, accessed, NOW)
    assert left == pytest.approx(0.6 * share)


def test_identity_does_not_decay() -> None:
    """M-7."""
    assert decayed(1.0, "identity", T0 - 1000 * DAY, None, NOW) == 1.0


def test_the_lowest_default_is_pruned_in_the_end() -> None:
    """M-7: an observation decays to .135, below the .15 that things are pruned under."""
    old = NOW - 31 * DAY
    left = {kind: decayed(value, kind, old, None, NOW) for kind, value in IMPORTANCE.items()}
    assert min(left.values()) == left["observation"] == pytest.approx(0.135)
    kept = [
        Kept(id=kind, type=kind, importance=value, created_at=old)
        for kind, value in IMPORTANCE.items()
    ]
    assert prunable(kept, NOW).decayed == ("observation",)


@given(
    st.floats(0, 1), st.sampled_from(sorted(IMPORTANCE)), instants, st.none() | instants, instants
)
def test_decay_is_bounded(
    importance: float, kind: str, made: datetime, accessed: datetime | None, now: datetime
) -> None:
    """M-7: never above 1, nor below .45 of it; also with clocks that are wrong."""
    left = decayed(importance, kind, made, accessed, now)  # type: ignore[arg-type]
    assert importance * 0.449 <= left <= 1.0
    assert left <= importance * 1.1 + 1e-9


@given(
    st.lists(
        st.tuples(st.integers(0, 50), instants, st.none() | instants), unique_by=lambda t: t[0]
    ),
    st.randoms(),
)
def test_pruning_does_not_depend_on_the_order(rows: list, random) -> None:  # type: ignore[type-arg, no-untyped-def]
    """M-7."""
    kept = [
        Kept(id=memory_id(n), type="observation", importance=0.3, created_at=made, expires_at=ends)
        for n, made, ends in rows
    ]
    shuffled = random.sample(kept, len(kept))
    assert prunable(kept, NOW) == prunable(shuffled, NOW)
    found = prunable(kept, NOW)
    assert not set(found.expired) & set(found.decayed)


def test_what_is_pruned() -> None:
    """M-6, M-7: what has expired, at once; what has faded only when it's older than 30 days."""

    def kept(number: int, age_days: float, **fields: object) -> Kept:
        given = {"type": "observation", "importance": 0.3, "created_at": NOW - age_days * DAY}
        return Kept(id=memory_id(number), **(given | fields))  # type: ignore[arg-type]

    found = prunable(
        [
            kept(1, 31),
            kept(2, 30),
            kept(3, 31, accessed_at=NOW - 20 * DAY),
            kept(4, 1, expires_at=NOW),
            kept(5, 1, expires_at=NOW + timedelta(microseconds=1)),
            kept(6, 400, type="identity", importance=0.01),
            kept(7, 90, expires_at=NOW - DAY),
            kept(8, 2, importance=0.0),
        ],
        NOW,
    )
    assert found.expired == ids(4, 7)
    assert found.decayed == ids(1)


# ---------------------------------------------------------------- merging


def note(number: int, age_days: float = 10, **fields: object) -> Memory:
    given = {
        "stability": "volatile",
        "created_at": NOW - age_days * DAY - timedelta(seconds=number),
    }
    return memory(number, **(given | fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("count", "batches"),
    [(0, []), (2, []), (3, [3]), (5, [5]), (6, [5]), (7, [5]), (8, [5, 3]), (13, [5, 5, 3])],
)
def test_batches(count: int, batches: list[int]) -> None:
    """M-6: five to a summary, three at least; fewer stay."""
    found = merges([note(number) for number in range(count)], NOW)
    assert [len(merge.merged_ids) for merge in found] == batches


def test_what_is_not_merged() -> None:
    """M-6: what is stable, younger than 7 days, or has expired."""
    notes = [note(1), note(2), note(3, 6.99), note(4, stability="stable"), note(5, expires_at=NOW)]
    assert merges(notes, NOW) == []
    assert len(merges([*notes, note(6, 7.01)], NOW)) == 1


def test_what_is_tainted_is_merged_apart() -> None:
    """M-6, X-3: nobody from outside takes the person's notes along, out of what is recalled."""
    mixed = [note(number, is_tainted=number % 2 == 0) for number in range(10)]
    found = [(merge.memory.is_tainted, set(merge.merged_ids)) for merge in merges(mixed, NOW)]
    assert found == [(False, set(ids(1, 3, 5, 7, 9))), (True, set(ids(0, 2, 4, 6, 8)))]
    assert merges(mixed[:4], NOW) == [], "two of each"


def test_a_summary() -> None:
    """M-6: says what its members said and when, and descends from them."""
    days = [T0 + number * DAY for number in (3, 1, 2)]
    notes = [
        note(n, 20, content=f"note {n}", occurred_at=day, thread="t1", is_tainted=True)
        for n, day in enumerate(days, start=1)
    ]
    summary = merges(notes, NOW)[0].memory
    assert summary.content == "2026-01-02: note 2\n2026-01-03: note 3\n2026-01-04: note 1"
    assert (summary.type, summary.stability) == ("summary", "stable")
    assert summary.importance == IMPORTANCE["summary"]
    assert summary.occurred_at == T0 + 3 * DAY
    assert summary.provenance == ids(2, 3, 1)
    assert summary.is_tainted
    assert (summary.source, summary.thread) == ("api", "t1")
    assert summary.created_at == NOW


def test_the_ranges_of_a_summary_are_as_wide_as_the_widest() -> None:
    """M-6: open if one is."""
    notes = [
        note(1, valid_from=T0, valid_to=T0 + DAY),
        note(2, valid_from=T0 - DAY, valid_to=None),
        note(3, valid_from=T0, valid_to=T0),
    ]
    summary = merges(notes, NOW)[0].memory
    assert (summary.valid_from, summary.valid_to) == (T0 - DAY, None)
    assert not summary.is_tainted


def test_sources_and_conversations_are_merged_apart() -> None:
    """M-4, M-6: or a source could not be undone, and what one conversation said not be found."""
    notes = [note(n, source="ab"[n % 2], thread=("t1", "t2")[n // 6]) for n in range(12)]
    found = [each.memory for each in merges(notes, NOW)]
    assert [(one.source, one.thread) for one in found] == [
        ("a", "t1"),
        ("a", "t2"),
        ("b", "t1"),
        ("b", "t2"),
    ]
    assert merges([note(n, source=str(n)) for n in range(9)], NOW) == []


def test_too_long_for_one_summary() -> None:
    """M-6: then fewer are merged; what doesn't fit with two others stays as it is."""
    third = "x" * (CONTENT_BYTES_MAX // 3 - 20)
    found = merges([note(n, content=third) for n in range(6)], NOW)
    assert [len(merge.merged_ids) for merge in found] == [3, 3]
    assert all(len(each.memory.content.encode()) <= CONTENT_BYTES_MAX for each in found)
    assert merges([note(n, content="x" * CONTENT_BYTES_MAX) for n in range(6)], NOW) == []


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9000)), max_size=30), st.randoms())
def test_merging_does_not_depend_on_the_order(sizes: list[tuple[int, int]], random) -> None:  # type: ignore[no-untyped-def]
    """M-6: nor is anything in two summaries, nor one longer than a memory may be."""
    notes = [
        note(n, 8 + age, content="ü" * (size // 2) or "-") for n, (age, size) in enumerate(sizes)
    ]
    found = merges(notes, NOW)
    assert found == merges(random.sample(notes, len(notes)), NOW)
    members = [i for each in found for i in each.merged_ids]
    assert len(members) == len(set(members))
    for each in found:
        assert 3 <= len(each.merged_ids) <= 5
        assert len(each.memory.content.encode()) <= CONTENT_BYTES_MAX


def test_the_id_of_a_summary_is_made_of_its_members() -> None:
    """So two replicas that merge the same at once make one summary."""
    notes = [note(n) for n in range(3)]
    one, other = merges(notes, NOW)[0], merges(notes, NOW + DAY)[0]
    assert one.memory.id == other.memory.id
    assert one.memory.id != merges([*notes, note(4)], NOW)[0].memory.id


# ---------------------------------------------------------------- associating


@pytest.mark.parametrize(
    ("similarity", "relation", "weight"),
    [
        (0.8499, None, 0),
        (0.85, "related_to", 0.5),
        (0.925, "related_to", 0.75),
        (0.9499, "related_to", 0.833),
        (0.95, "updates", 0.833333),
        (1.0, "updates", 1.0),
        (1.0000001, "updates", 1.0),
    ],
)
def test_an_edge(similarity: float, relation: str | None, weight: float) -> None:
    """M-5: from the newer to the older."""
    edge = decide.edge_of("older", "newer", similarity)
    assert (edge.relation if edge else None) == relation
    if edge is not None:
        assert edge.weight == pytest.approx(weight, abs=1e-4)
        assert (edge.from_id, edge.to_id) == ("newer", "older")


def looked(seq: int, *near: tuple[int, float], linked: tuple[int, ...] = ()) -> Associable:
    return Associable(
        id=memory_id(seq),
        seq=seq,
        near=tuple((memory_id(n), n, similarity) for n, similarity in near),
        linked=frozenset(ids(*linked)),
    )


def test_a_pair_is_associated_once() -> None:
    """M-5: whichever of the two is looked at, and not again when it is already."""
    found = associate([looked(2, (1, 0.9)), looked(3, (2, 0.99), (1, 0.9), linked=(1,))])
    pairs = [(int(e.from_id, 16), int(e.to_id, 16), e.relation) for e in found.edges]
    assert pairs == [(2, 1, "related_to"), (3, 2, "updates")]
    both = associate([looked(1, (2, 0.9)), looked(2, (1, 0.9))])
    assert [(int(e.from_id, 16), int(e.to_id, 16)) for e in both.edges] == [(2, 1)]


def test_a_pass_makes_a_hundred_edges_and_skips_nothing() -> None:
    """M-5: what has no room any more is looked at completely by the next pass."""
    everything = [looked(100 + n, *((k, 0.9) for k in range(1, 10))) for n in range(40)]
    edges, through, passes = [], 0, 0
    while rest := [each for each in everything if each.seq > through]:
        found = associate(rest, through)
        assert len(found.edges) <= decide.EDGES_PER_PASS
        assert found.is_full == (found.through < rest[-1].seq)
        assert found.through > through
        edges += found.edges
        through = found.through
        passes += 1
    assert len(edges) == len(set(edges)) == 40 * 9
    assert passes == 4  # 11 memories of 9 edges fit into one


# ---------------------------------------------------------------- undoing


def test_undoing_follows_everything_that_was_made_of_it() -> None:
    """M-4: what was made of it, over any number of steps; other members of a merge stand again."""
    derived = {"a": ["b"], "b": ["s"], "c": ["s"], "s": ["t"], "t": ["a"], "x": []}
    merged = {"s": ["b", "c"], "t": ["s", "x"]}
    found = decide.revert(["a"], lambda i: derived[i], lambda i: merged.get(i, []))
    assert found.undone == ("a", "b", "s", "t")
    assert found.restored == ("c", "x")


@given(
    st.dictionaries(st.integers(0, 12), st.sets(st.integers(0, 12))),
    st.sets(st.integers(0, 12)),
    st.sets(st.integers(0, 12)),
)
def test_a_closure_is_closed(children: dict[int, set[int]], one: set[int], other: set[int]) -> None:
    """M-4: doing it twice changes nothing, and two at once are as one after the other."""

    def of(roots: set[int]) -> set[int]:
        return decide.closure(roots, lambda node: children.get(node, set()))

    assert of(of(one)) == of(one)
    assert of(one | other) == of(one) | of(other)


@given(
    st.dictionaries(st.integers(0, 30), st.sets(st.integers(0, 30), max_size=2)),
    st.sets(st.integers(0, 30)),
    st.integers(2, 8),
)
def test_an_undo_is_cut_between_families(
    children: dict[int, set[int]], roots: set[int], size: int
) -> None:
    """M-4: all of it, nothing twice, nothing too large; what was merged stays with its summary."""

    def derived(one: str) -> list[str]:
        return [f"{child:02}" for child in children.get(int(one), ())]

    def merged(one: str) -> list[str]:
        return [f"m{one}", f"n{one}"] if int(one) % 3 == 0 else []

    whole = decide.revert([f"{root:02}" for root in roots], derived, merged)
    parts = whole.parts(size)
    assert sorted(one for part in parts for one in part.undone) == list(whole.undone)
    assert sorted(one for part in parts for one in part.restored) == list(whole.restored)
    assert all(len(part.undone) <= size and len(part.restored) <= size for part in parts)
    assert all(part.undone or part.restored for part in parts)
    for family in whole.families:
        inside = [part for part in parts if not set(family).isdisjoint(part.undone + part.restored)]
        counts = [len(set(family) & set(ids)) for ids in (whole.undone, whole.restored)]
        assert len(inside) == 1 or max(counts) > size
        for one in family:
            assert set(derived(one) if one[0] not in "mn" else ()) <= set(family)


# ---------------------------------------------------------------- instants


@given(instants)
def test_instants_come_back(moment: datetime) -> None:
    """To the microsecond."""
    assert instant(micros(moment)) == moment
