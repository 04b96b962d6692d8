"""What says the same, and what says how it is now (SPEC M-5, M-6)."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.memory.upkeep.sameness import judge, keys, replacements
from tests.support.examples import up_to
from tests.support.memory_records import DAY, memory
from vigil.teams import TEAM

_WORDS = (
    "Ann Bob boat code is are now not never the a likes doesn't like 7 8 4711 aBc abc 2026 "
    "lives in of and on my PIN name called Daisy Friday"
)
WORDS = st.sampled_from(_WORDS.split())
TEXTS = st.lists(WORDS, min_size=2, max_size=7).map(" ".join)


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


def test_what_says_something_else_as_well_is_not_replaced() -> None:
    """A newer code took the place of a memory that said where Ann lives, too."""
    several, code = "The locker code is 4711. Ann lives in York", "The locker code is 4712"
    assert likeness(code, several) is None
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
