"""Questions for several things: by grammar, and the second look that finds them (SPEC M-3)."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.memory.recall import plurals, scores, terms
from services.memory.recall.plurals import is_gathering
from services.memory.recall.scores import Candidates
from services.memory.recall.words import Words
from tests.memory.test_scoring import NOW, WEIGHTS, candidates
from tests.support.remembered import Remembered, remembered

WORDS = Words()
NOUNS = ("lamp", "garden", "photo", "bridge", "sauce", "old kettle", "brass key")
_auxiliary = st.sampled_from(("did", "does", "has"))


@pytest.fixture
async def ann(tmp_path: Path) -> AsyncIterator[Remembered]:
    async with remembered(tmp_path) as memory:
        yield memory


@given(st.sampled_from(NOUNS), _auxiliary, st.sampled_from(("Which", "what")))
def test_the_number_of_the_noun_tells_how_many_are_asked_for(
    noun: str, auxiliary: str, which: str
) -> None:
    assert is_gathering(f"{which} {noun}s {auxiliary} Ann want?")
    assert not is_gathering(f"{which} {noun} {auxiliary} Ann want?")


@pytest.mark.parametrize(
    ("question", "gathers"),
    [
        ("Where has Ann been?", True),
        ("What has Ann been reading?", True),
        ("Which kinds of tea does Ann drink?", True),
        ("What are Ann's plans?", True),
        ("List all that Ann said of the boat", True),
        ("Which bus did Ann take?", False),
        ("What class does Ann teach?", False),
        ("What are you up to?", False),
        ("What was the price that Ann paid for the tickets?", False),
        ("When did Ann sell the boats?", False),
        ("I wonder which of the boats Ann sold", False),
    ],
)
def test_what_asks_for_several(question: str, gathers: bool) -> None:
    assert is_gathering(question) == gathers


@given(st.text(max_size=300))
def test_any_text_is_one_or_isnt(text: str) -> None:
    assert is_gathering(text) in (True, False)
    assert terms.has_statement(text) in (True, False)


def pool_of(texts: list[str], text: list[float], nums: list[int]) -> Candidates:
    tokens = np.empty(len(texts), dtype=np.object_)
    tokens[:] = [WORDS.tokens(one) for one in texts]
    return candidates(len(texts), text=text, nums=nums, tokens=tokens)


@given(
    st.lists(
        st.tuples(st.sampled_from(("", "the old boat", "a new boat", "tea", "grey rain")),
                  st.floats(0, 9)),
        min_size=1, max_size=8,
    ),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_likeness_is_a_share_that_no_order_changes(
    rows: list[tuple[str, float]], dice: random.Random
) -> None:
    """M-3: recall is a function of what is stored: the order of candidates doesn't matter."""
    rarity = np.ones(WORDS.size)

    def looked(order: list[int]) -> dict[int, float]:
        pool = pool_of([rows[at][0] for at in order], [rows[at][1] for at in order], order)
        best = scores.rank(pool, WEIGHTS, "hybrid", NOW, len(order))
        alike = plurals.with_likeness(pool, best, WORDS, rarity).alike
        return dict(zip(order, alike.tolist(), strict=True))

    order = list(range(len(rows)))
    found = looked(order)
    assert all(0.0 <= share <= 1.0 for share in found.values())
    dice.shuffle(order)
    assert looked(order) == pytest.approx(found)


def test_its_weights_change_nothing_but_the_parts_that_are_named() -> None:
    changed = msgspec.structs.asdict(plurals.weighted(WEIGHTS))
    for name, weight in msgspec.structs.asdict(WEIGHTS).items():
        if isinstance(weight, float):
            assert changed[name] == pytest.approx(weight * plurals.EMPHASIS.get(name, 1.0))
        else:
            assert changed[name] == weight


async def test_what_says_something_like_the_best_is_found_in_other_conversations(
    ann: Remembered,
) -> None:
    """Issue 36: only one turn has words of the question; the others say the like, days apart, and
    each hit tells so. A question for one thing takes no second look."""
    await ann.save("Noa: I planted sunflowers in the yard", "Gil: lovely", thread="a")
    await ann.save("Noa: the yard is a mess, and the fence leans", "Gil: oh no", thread="a")
    await ann.save("Noa: I dug up half the lawn for sunflowers and figs", "Gil: wow", thread="b")
    await ann.save("Noa: my new boss has a loud voice", "Gil: take care", thread="c")
    await ann.save("Noa: we saw a film about pilots", "Gil: nice", thread="d")
    query = "Which flowers has Noa planted?"
    hits = (await ann.recall(query)).hits
    parts = {hit.memory.content: hit.parts for hit in hits}
    lawn, boss = (
        parts["Noa: I dug up half the lawn for sunflowers and figs"],
        parts["Noa: my new boss has a loud voice"],
    )
    assert lawn.alike > boss.alike
    assert parts["Noa: I planted sunflowers in the yard"].alike == pytest.approx(
        WEIGHTS.weight_alike
    )
    assert all(part.thread == 0 for part in parts.values())
    for hit in hits:
        assert sum(msgspec.structs.astuple(hit.parts)) == pytest.approx(hit.score)
    assert await ann.found(query, limit=2) == (await ann.found(query, limit=10))[:2]
    assert all(hit.parts.alike == 0 for hit in (await ann.recall("When did Noa plant?")).hits)


async def test_a_turn_that_tells_before_it_asks_is_no_question(ann: Remembered) -> None:
    """Issue 36: many end with how the other one is."""
    told = "Noa: I flew out to Seoul to see my daughter. How's your week going?"
    asked = "Noa: How is your daughter in Seoul?"
    await ann.save(told, asked)
    hits = (await ann.recall("daughter in Seoul")).hits
    parts = {hit.memory.content: hit.parts for hit in hits}
    assert parts[told].question == 0
    assert parts[asked].question == pytest.approx(-WEIGHTS.weight_question)
