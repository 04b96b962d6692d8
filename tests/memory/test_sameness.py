"""What says the same, and what says how it is now (SPEC M-5, M-6)."""

from __future__ import annotations

import itertools
import random
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.memory.rules.sameness import judge, keys, replacements
from tests.support.examples import up_to
from tests.support.memory_records import DAY, memory
from vigil.contracts import Memory
from vigil.teams import TEAM

_WORDS = (
    "Ann Bob boat code is are now not never the a likes doesn't like 7 8 4711 aBc abc 2026 "
    "lives in of and on my PIN name called Daisy Friday"
)
WORDS = st.sampled_from(_WORDS.split())
TEXTS = st.lists(WORDS, min_size=2, max_size=7).map(" ".join)
_SENTENCES = (
    "Ann likes tea", "Ann doesn't like tea", "Bob likes tea", "She lives in York", "She is kidding",
    "Ann lives in York now", "Room 3 has a bed", "Room 4 has a bed", "He does not eat fish",
    "Bob owns a boat", "The boat is called Daisy", "The boat is called Iris",
)  # fmt: skip
SENTENCES = st.lists(st.sampled_from(_SENTENCES), min_size=1, max_size=4)
_FACTS = (
    "Ann likes tea", "Ann likes rum", "She lives in York", "She loves cats", "Bob owns a boat",
    "Bob doesn't eat fish", "Room 3 has a bed",
)  # fmt: skip
FACTS = st.lists(st.sampled_from(_FACTS), min_size=1, max_size=4, unique=True).map(". ".join)


def likeness(newer: str, older: str, **fields: Any) -> str | None:
    """What the newer is to the older, if anything finds that they may be related."""
    one, other = memory(2, newer, **fields), memory(1, older)
    meet = set(keys(one.content, one.type, "ann")) & set(keys(other.content, other.type, "ann"))
    return judge(one, other) if meet else None


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("The locker code is 4711", "The locker code is 4711."),
        ("the boat is called Daisy", "The boat is called Daisy"),
        ("Ann\u2019s boat is red", "Ann's  boat is red."),
        ("Locker code is 4711", "The locker code is 4711"),
    ],
)
def test_the_same_words_say_the_same(newer: str, older: str) -> None:
    assert likeness(newer, older) == likeness(older, newer) == "same"


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("The locker code is now 4712", "The locker code is 4711"),
        ("Ann's phone number is 555 9", "Ann's phone number is 0171 33"),
        ("The boat is called Iris", "The boat is called Daisy now."),
        ("The exam is on 10 June", "The exam is on 3 May"),
        ("The favourite colour is dark blue", "The favourite colour is green"),
        ("The car isn't red", "The car is red"),
        ("Ann doesn't eat fish", "Ann eats fish"),
        ("Ann is no longer a member", "Ann is a member"),
        ("The flat is at 12 Elm Road", "The flat is at 9 Elm Road"),
        ("Mein Passwort ist Birne", "Mein Passwort ist Apfel"),
    ],
)
def test_another_value_and_the_opposite_replace(newer: str, older: str) -> None:
    assert likeness(newer, older) == likeness(older, newer) == "replaced"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Invoice 4711 is paid", "Invoice 4712 is paid"),
        ("Ann likes tea", "Ann likes coffee"),
        ("Ann likes Bob", "Bob likes Ann"),
        ("My friend is Ann", "My friend is Bob"),
        ("The car is red", "The car is fast"),
        ("Ann is a doctor", "Ann is a mother"),
        ("There is a box in room 3", "There is a box in room 4"),
        ("One of my numbers is 4711", "One of my numbers is 4712"),
        ("My numbers are 1 2", "My numbers are 3 4"),
        ("The meeting was at 10", "The meeting was at 11"),
        ("The password was abc", "The password is abc"),
        ("The sword of Ann is 3 feet long", "The sword of Ann is 2 years old"),
        ("IT needs the code", "it needs the code"),
        ("The balance is -5", "The balance of Ann is -5"),
        ("The name is Ann and Bob", "The name is Ann"),
        ("Is the code 4711?", "Is the code 4711"),
        ("Ann: sounds good", "Ann: sounds good"),
    ],
)
def test_different_facts_stay_apart(one: str, other: str) -> None:
    assert likeness(one, other) is None
    assert likeness(other, one) is None


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("Ann likes tea. She lives in York", "Ann likes tea"),
        ("Ann likes tea. She lives in York.", "ann likes tea."),
        ("The boat is called Daisy. Bob owns the boat", "Boat is called Daisy."),
        ("Ann doesn't eat fish. Bob has a dog.", "Ann doesn't eat fish"),
        ("Ann likes tea. She is a cook. Her dog needs food", "Ann likes tea. She is a cook"),
        ("The locker code is 4711. Ann likes tea", "The locker code is 4711"),
        ("Ann wohnt in York. Sie trinkt Tee", "Ann wohnt in York"),
    ],
)
def test_what_says_more_is_wider(wide: str, narrow: str) -> None:
    assert (likeness(wide, narrow), likeness(narrow, wide)) == ("wider", "narrower")


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        # another name, number, day, person, or a "not"
        ("Bob likes tea. She lives in York", "Ann likes tea"),
        ("Room 3 has a bed. Ann lives in York", "Room 4 has a bed"),
        ("Ann likes tea. She lives in York", "Ann doesn't like tea"),
        ("Ann doesn't like tea. She lives in York", "Ann likes tea"),
        ("Ann likes tea. She lives in York", "She lives in York"),
        ("Eve likes tea. Bob has a dog. He lives in York", "Bob has a dog. He lives in York"),
        # what follows takes it back, limits it, or says it otherwise
        ("Ann likes tea. No, she doesn't", "Ann likes tea"),
        ("Ann likes tea. But she loves coffee", "Ann likes tea"),
        ("Ann likes tea. She is kidding", "Ann likes tea"),
        ("Ann likes tea. That is a rumour", "Ann likes tea"),
        ("Ann likes tea. It was in May", "Ann likes tea"),
        ("Ann lives in Rome. She has moved to York", "Ann lives in Rome"),
        ("Ann lives in Rome. She is in York", "Ann lives in Rome"),
        ("Ann likes tea. She loves coffee and hates tea", "Ann likes tea"),
        ("Ann likes tea. Bob loves the sound of that", "Ann likes tea"),
        ("Ann likes tea. So she drinks coffee", "Ann likes tea"),
        ("Ann lives in Rome. She moved to York", "Ann lives in Rome"),
        ("Ann lives in Rome. She lives in York", "Ann lives in Rome"),
        ("Ann likes tea. She loves coffee more", "Ann likes tea"),
        ("Ann likes tea. Eve has a different opinion", "Ann likes tea"),
        ("Ann likes tea. She needs to stop", "Ann likes tea"),
        ("The opposite is true. Ann likes tea", "Ann likes tea"),
        ("Bob has a theory. Ann likes tea", "Ann likes tea"),
        # quoted, asked, listed, cut in the wrong place
        ('Bob has a song "Ann likes tea. She lives in York"', "Ann likes tea"),
        ("Ann likes tea. Does she live in York?", "Ann likes tea"),
        ("Wishes of Bob\nAnn likes tea. She lives in York", "Ann likes tea"),
        ("Nobody knows Dr. Ann likes tea. She lives in York", "Ann likes tea"),
        ("Ann likes tea and coffee", "Ann likes tea"),
        ("Ann likes fish and chips", "Ann likes fish"),
        ("Ann likes tea. " * 5, "Ann likes tea"),
    ],
)
def test_what_only_seems_to_say_more_stays_beside_it(wide: str, narrow: str) -> None:
    assert likeness(wide, narrow) is None
    assert likeness(narrow, wide) is None


def test_the_wider_stands_if_it_is_as_trusted_and_no_less_important() -> None:
    """X-3; and whichever was saved first."""
    wide, narrow = "Ann likes tea. She lives in York", "Ann likes tea"
    for mine, its in itertools.product((False, True), repeat=2):
        for important in (0.3, 0.6, 0.9):
            one = memory(2, wide, is_tainted=mine, importance=important)
            other = memory(1, narrow, is_tainted=its)
            expected = mine == its and important >= 0.6
            for found in (
                replacements(one, [other], frozenset()),
                replacements(other, [one], frozenset({one.id})),
                replacements(one, [other], frozenset({other.id})),
            ):
                joined = [(x.by_id, x.memory_ids, x.is_same, x.is_wider) for x in found]
                assert joined == [(one.id, (other.id,), False, True)] * expected
    for fields in ({"stability": "volatile"}, {"type": "event"}):
        assert likeness(wide, narrow, **fields) is None
    for days, expected in ((0.5, "narrower"), (40, None)):
        again = memory(2, narrow, created_at=memory(1).created_at + days * DAY)
        assert judge(again, memory(1, wide)) == expected, "it may have been otherwise meanwhile"
    late = memory(2, wide, created_at=memory(1).created_at + 40 * DAY)
    assert judge(late, memory(1, narrow)) == "wider"
    both = memory(2, wide, stability="volatile"), memory(1, narrow, stability="volatile")
    assert judge(*both) is None, "notes become summaries"


def test_what_says_something_else_as_well_is_not_replaced() -> None:
    """A newer code took the place of a memory that said where Ann lives, too."""
    several, code = "The locker code is 4711. Ann lives in York", "The locker code is 4712"
    assert likeness(code, several) == "corrected"
    new, old = memory(2, code), memory(1, several)
    (found,) = replacements(new, [old], frozenset())
    assert (found.by_id, found.memory_ids, found.is_beside) == (new.id, (old.id,), True)
    assert not replacements(new, [old], frozenset(), frozenset({old.id}))
    assert not replacements(msgspec.structs.replace(new, is_tainted=True), [old], frozenset())
    assert likeness(several, code) == "replaced"
    for one, other in (
        ("Dr. May's phone number is 1", "Dr. May's phone number is 2"),
        ("Der Geburtstag ist am 3. Mai", "Der Geburtstag ist am 4. Mai"),
        ("The address is 12 St. James Road", "The address is 9 St. James Road."),
    ):
        assert likeness(one, other) == likeness(other, one) == "replaced"


def test_what_tells_of_an_instant_of_its_own_stays_apart() -> None:
    """Two runs on two days are two; when it was said makes nothing of its own."""
    text = "Ann ran through the park"
    assert likeness(text, text, occurred_at=memory(1).created_at - 30 * DAY) is None
    assert likeness(text, text, occurred_at=memory(2).created_at - timedelta(hours=1)) == "same"
    for fields in (
        {"type": "event"}, {"type": "decision"}, {"stability": "volatile"},
        {"valid_to": memory(2).created_at}, {"expires_at": memory(2).created_at + DAY},
    ):  # fmt: skip
        assert likeness(text, text, **fields) is None, fields
    assert not keys("My code is 4711", "fact", TEAM), "each member's is another"
    assert keys("The code is 4711", "fact", TEAM)


@up_to(300)
@given(TEXTS, TEXTS)
def test_no_two_facts_are_one(one: str, other: str) -> None:
    """Numbers, names, letters of codes and "not" tell facts apart, wherever they stand."""
    if likeness(one, other) != "same":
        return
    kept = [
        [word for word in text.replace("The ", "the ").split() if word not in ("the", "a")]
        for text in (one, other)
    ]
    assert kept[0][0].lower() == kept[1][0].lower()
    assert kept[0][1:] == kept[1][1:]


@up_to(300)
@given(SENTENCES, SENTENCES)
def test_what_is_within_another_loses_nothing(one: list[str], other: list[str]) -> None:
    """Each sentence of the narrower is one of the wider, to the number, the name and the "not"."""
    found = likeness(". ".join(one), ". ".join(other))
    if found in ("wider", "narrower"):
        wide, narrow = (one, other) if found == "wider" else (other, one)
        assert len(narrow) < len(wide)
        assert wide[: len(narrow)] == narrow
        for sentence in wide[len(narrow) :]:
            assert not {"not", "doesn't", "now", "kidding"} & set(sentence.split())
    turned = {"wider": "narrower", "narrower": "wider", "same": "same"}
    if found in turned:
        assert likeness(". ".join(other), ". ".join(one)) == turned[found]


@up_to(150)
@given(st.lists(FACTS, min_size=2, max_size=6, unique=True), st.randoms(use_true_random=False))
def test_the_same_stands_whatever_was_saved_first(texts: list[str], chance: random.Random) -> None:
    """And a second look joins nothing."""

    def meeting(one: Memory, others: list[Memory]) -> list[Memory]:
        mine = set(keys(one.content, one.type, "ann"))
        return [each for each in others if mine & set(keys(each.content, each.type, "ann"))]

    def left(contents: list[str]) -> set[str]:
        stand: list[Memory] = []
        for number, content in enumerate(contents):
            new = memory(number, content)
            found = replacements(new, meeting(new, stand), frozenset())
            gone = {id_ for each in found for id_ in each.memory_ids}
            stand = [each for each in [new, *stand] if each.id not in gone]
        for each in stand:
            others = [other for other in stand if other is not each]
            newer = frozenset(other.id for other in others if other.created_at > each.created_at)
            assert not replacements(each, meeting(each, others), newer)
        return {each.content for each in stand}

    first = left(texts)
    for text in texts:
        assert all(any(part in each for each in first) for part in text.split(". "))
    assert left(chance.sample(texts, len(texts))) == first


def test_who_stands_is_trusted_important_and_then_newer() -> None:
    """X-3: content from outside neither strengthens nor replaces what the person said."""
    text, other = "The code is 4711", "The code is 4712"
    for tainted, important in itertools.product((False, True), repeat=2):
        old = memory(1, text, importance=0.9 if important else 0.6)
        new = memory(2, text, is_tainted=tainted)
        (found,) = replacements(new, [old], frozenset())
        assert found.is_same
        stays = tainted or important
        assert (found.by_id, found.memory_ids) == (
            (old.id, (new.id,)) if stays else (new.id, (old.id,))
        )
    old = memory(1, text, is_tainted=True, importance=0.9)
    (found,) = replacements(memory(2, other), [old], frozenset())
    assert (found.memory_ids, found.is_same) == ((old.id,), False)
    assert not replacements(memory(2, other, is_tainted=True), [memory(1, text)], frozenset())
    late = replacements(memory(1, text), [memory(2, other)], frozenset({memory(2).id}))
    assert [one.by_id for one in late] == [memory(2).id], "the newer one, whichever is looked at"
