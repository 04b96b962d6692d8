"""Scores: sums of normalised parts, which add up, with ties that everybody breaks alike (M-3)."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.memory.recall import scores
from services.memory.recall.scores import Candidates, Lending, Weights

WEIGHTS = Weights()
NOW = 1_800_000_000.0


def candidates(count: int, **columns: Any) -> Candidates:
    """So many candidates that differ in nothing but what is given."""
    zeros: dict[str, Any] = {
        name: np.zeros(count) for name in ("text", "cosine", "words", "gist", "importance")
    }
    given_ = {
        name: np.array(column) for name, column in columns.items() if isinstance(column, list)
    }
    others = {name: column for name, column in columns.items() if not isinstance(column, list)}
    fields = zeros | {
        "nums": np.arange(1, count + 1),
        "happened_at": np.full(count, NOW),
        "is_speaker": np.zeros(count, dtype=np.bool_),
        "is_tainted": np.zeros(count, dtype=np.bool_),
        "is_question": np.zeros(count, dtype=np.bool_),
        "substance": np.ones(count),
        "names": np.zeros(count),
        "alike": np.zeros(count),
        "tokens": np.full(count, b"", dtype=np.object_),
        "on_date": np.zeros(count),
        "threads": np.full(count, ""),
        "sayings": np.arange(count),
    }
    return Candidates(**(fields | given_ | others))


def ranked(some: Candidates, mode: Any = "hybrid", **weights: float) -> list[int]:
    weighed = msgspec.structs.replace(WEIGHTS, **weights)
    return [int(some.nums[one.at]) for one in scores.rank(some, weighed, mode, NOW, 10)]


def lending(*links: tuple[int, int, float]) -> Lending:
    borrowers, lenders, shares = zip(*links, strict=True)
    return Lending(np.array(borrowers), np.array(lenders), np.array(shares))


def test_text_and_vectors_alone_are_what_the_indexes_said() -> None:
    some = candidates(3, text=[1.0, 9.0, 4.0], cosine=[0.9, 0.1, 0.5], words=[0.0, 0.0, 9.0])
    assert ranked(some, "text") == [2, 3, 1]
    assert ranked(some, "vector") == [1, 3, 2]
    assert [one.score for one in scores.rank(some, WEIGHTS, "vector", NOW, 2)] == [0.9, 0.5]


def test_a_large_lead_in_one_part_counts_for_more_than_ranks() -> None:
    """M-3: sums of scores, not a fusion of ranks, by which 1 and 2 would tie."""
    some = candidates(3, text=[9.0, 8.9, 0.0], cosine=[0.1, 0.9, 0.0])
    assert ranked(some)[:2] == [2, 1]


def test_a_neighbour_lends_what_it_says_itself_only() -> None:
    """M-3: of three in a row, the last borrows nothing of the first through the second."""
    neighbours = lending((1, 0, 1.0), (0, 1, 1.0), (2, 1, 1.0), (1, 2, 1.0), (2, 0, 0.5))
    some = candidates(4, text=[10.0, 0.0, 0.0, 0.0], neighbours=neighbours)
    one, two, three, four = sorted(
        scores.rank(some, WEIGHTS, "hybrid", NOW, 4), key=lambda each: each.at
    )
    assert one.parts.neighbours == 0
    assert two.parts.neighbours == pytest.approx(WEIGHTS.weight_text * WEIGHTS.weight_neighbours)
    assert three.parts.neighbours == pytest.approx(
        0.5 * WEIGHTS.weight_text * WEIGHTS.weight_neighbours
    )
    assert four.parts.neighbours == 0


def test_what_says_the_very_same_is_below_what_says_something_else() -> None:
    """Issue 19: the best of them keeps its place; text alone is as the index has it."""
    some = candidates(4, text=[8.0, 9.0, 5.0, 8.5], sayings=[7, 7, 1, 7])
    assert ranked(some) == [2, 3, 4, 1]
    assert ranked(some, weight_repeat=0.0) == [2, 4, 1, 3]
    assert ranked(some, "text") == [2, 4, 1, 3]
    parts = {one.at: one.parts.repeat for one in scores.rank(some, WEIGHTS, "hybrid", NOW, 4)}
    assert parts == {0: -1.0, 1: 0.0, 2: 0.0, 3: -1.0}


def test_neighbours_lend_by_the_square_of_what_they_say() -> None:
    """Issue 19: many that fit a little don't bury the one that has a name of its own."""
    alone = lending((1, 0, 1.0), (3, 2, 1.0))
    some = candidates(4, text=[10.0, 0.0, 5.0, 0.0], neighbours=alone)
    found = {one.at: one.parts.neighbours for one in scores.rank(some, WEIGHTS, "hybrid", NOW, 4)}
    assert found[1] == pytest.approx(WEIGHTS.weight_text * WEIGHTS.weight_neighbours)
    assert found[3] == pytest.approx(WEIGHTS.weight_text * WEIGHTS.weight_neighbours / 4)


def test_what_says_little_is_seldom_an_answer() -> None:
    some = candidates(3, text=[5.0, 5.0, 5.0], substance=[0.0, 0.4, 1.0])
    found = {one.at: one.parts.brief for one in scores.rank(some, WEIGHTS, "hybrid", NOW, 3)}
    assert ranked(some) == [3, 2, 1]
    assert [found[at] for at in range(3)] == [-WEIGHTS.weight_brief, pytest.approx(-0.6), 0.0]


def test_the_best_of_a_conversation_lends_to_all_of_it() -> None:
    """M-3: an answer that has no word of the question stands where others have them."""
    some = candidates(4, text=[10.0, 0.0, 0.0, 0.0], threads=["a", "a", "b", ""])
    found = {one.at: one.parts.thread for one in scores.rank(some, WEIGHTS, "hybrid", NOW, 4)}
    assert found[0] == found[1] == pytest.approx(WEIGHTS.weight_text * WEIGHTS.weight_thread)
    assert found[2] == found[3] == 0


def test_a_named_day_is_a_part_and_a_question_seldom_an_answer() -> None:
    some = candidates(3, text=[5.0, 5.0, 5.0], on_date=[0.0, 0.5, 1.0])
    assert ranked(some) == [3, 2, 1]
    assert ranked(candidates(2, text=[5.0, 5.0], is_question=[False, True])) == [1, 2]


def test_many_associations_are_no_merit() -> None:
    """M-3: the graph lends the best share, not the sum."""
    associations = lending((2, 0, 0.9), (2, 1, 0.8), (3, 0, 0.9))
    some = candidates(4, text=[10.0, 10.0, 0.0, 0.0], associations=associations)
    found = {one.at: one.parts.graph for one in scores.rank(some, WEIGHTS, "hybrid", NOW, 4)}
    assert found[2] == found[3] == pytest.approx(0.9 * WEIGHTS.weight_text * WEIGHTS.weight_graph)


def test_small_terms_decide_among_equals() -> None:
    """M-3, X-3: later, more important, trusted, said by whom was asked about."""
    later = candidates(2, happened_at=[NOW - 90 * 86_400, NOW])
    assert ranked(later) == [2, 1]
    assert ranked(candidates(2, importance=[0.2, 0.9])) == [2, 1]
    assert ranked(candidates(2, is_tainted=[False, True])) == [1, 2]
    assert ranked(candidates(2, is_speaker=[True, False])) == [1, 2]


def test_recency_halves_by_its_half_life() -> None:
    half = candidates(1, happened_at=[NOW - 30 * 86_400])
    (one,) = scores.rank(half, WEIGHTS, "hybrid", NOW, 1)
    assert one.parts.recency == pytest.approx(WEIGHTS.weight_recency / 2)


def test_ties_go_to_the_later_then_to_the_one_saved_later() -> None:
    some = candidates(4, happened_at=[NOW, NOW + 5, NOW, NOW + 5])
    assert ranked(some, weight_recency=0.0) == [4, 2, 3, 1]


def test_what_has_no_vector_yet_is_found_by_the_rest() -> None:
    some = candidates(3, text=[5.0, 4.0, 0.0], cosine=[float("nan"), 0.2, 0.9])
    assert ranked(some, weight_vector=0.1)[0] == 1
    assert ranked(candidates(2, text=[1.0, 2.0], cosine=None)) == [2, 1]
    assert ranked(some, "vector")[-1] == 1


def test_nothing_is_ranked_as_nothing() -> None:
    assert ranked(candidates(0)) == []


_unit = st.floats(0, 1, allow_nan=False)


@given(st.lists(st.tuples(_unit, _unit, _unit, _unit, st.booleans()), min_size=1, max_size=12))
def test_parts_add_up_and_order_does_not_matter(rows: list[tuple[float, ...]]) -> None:
    """Issue 4: each hit says why it was found; the same set gives the same answer."""
    text, cosine, words, gist, tainted = map(list, zip(*rows, strict=True))
    some = candidates(
        len(rows), text=text, cosine=cosine, words=words, gist=gist, is_tainted=tainted
    )
    found = scores.rank(some, WEIGHTS, "hybrid", NOW, len(rows))
    for one in found:
        parts = msgspec.structs.astuple(one.parts)
        assert sum(parts) == pytest.approx(one.score, abs=1e-9)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    turned = candidates(
        len(rows),
        nums=list(range(len(rows), 0, -1)),
        text=text[::-1],
        cosine=cosine[::-1],
        words=words[::-1],
        gist=gist[::-1],
        is_tainted=tainted[::-1],
    )
    assert ranked(turned) == ranked(some)
