"""Which changes of a fact matter, and how a fact is written with that (FLOW F-9, F-10)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import up_to
from vigil.contracts.board import SourceFacts
from vigil.errors import InvalidInput
from vigil.facts.hooked import read_hooked
from vigil.facts.shape import words_of
from vigil.facts.taken import taken
from vigil.facts.wanted import read_wanted, rules_of_wanted, shapes_of_wanted, words_of_wanted

NOW: Final = datetime(2026, 11, 20, 8, 30, tzinfo=UTC)
EMPTY: Final = SourceFacts(id="1f" * 16, owner="ann", agent="vigil")


def told(text: str, *values: object, bits_max: int = 10_000) -> tuple[list[bool], SourceFacts]:
    """Return which of the values was news, told one after the other of one fact."""
    wanted, source, found = read_wanted({"it": text}), EMPTY, list[bool]()
    for number, value in enumerate(values):
        source = taken(
            source,
            shapes_of_wanted(wanted),
            {"it": value},
            NOW + timedelta(minutes=number),
            bits_max=bits_max,
            cause=f"e{number}",
            rules=rules_of_wanted(wanted),
        )
        assert source.newest is not None
        found.append(source.newest.news == ("it",))
    return found, source


@pytest.mark.parametrize(
    ("text", "values", "news"),
    [
        ("one_of[a, b, c]", "abcca", [1, 1, 1, 0, 1]),
        ("one_of[a, b, c] news never", "abc", [0, 0, 0]),
        ("one_of[a, b, c] news to B|c", "abcac", [0, 1, 1, 0, 1]),
        ("yes_no news to yes", ["no", "yes", "yes", "no", "yes"], [0, 1, 0, 0, 1]),
        ("count", [1, 50], [0, 0]),
        ("count news always", [1, 1, 2], [1, 0, 1]),
        ("count news +10", [5, 9, 14, 15, 20, 30, 0, 25], [0, 0, 0, 1, 0, 1, 0, 1]),
        ("count news -10", [50, 45, 41, 40, 39, 90, 30], [0, 0, 0, 1, 0, 0, 1]),
        ("count news +100", [0, 150, 9, 120, 60, 159, 160], [0, 1, 0, 1, 0, 0, 1]),
        ("count news 10", [50, 41, 40, 49, 50, 60], [0, 0, 1, 0, 1, 1]),
        ("number[0.0..9.5 %] news +0.5", [1.0, 1.4, 1.5], [0, 0, 1]),
        ("instant news always", ["2026-11-20T01:00Z", "2026-11-20T02:00Z"], [1, 1]),
    ],
)  # fmt: skip
def test_which_changes_are_news(text: str, values: list[object], news: list[int]) -> None:
    assert told(text, *values)[0] == [bool(one) for one in news]


def test_what_grew_slowly_is_told_with_what_it_grew_from() -> None:
    """From one telling to the next it never grew by ten."""
    _, source = told("count news +10", *range(5, 16))
    (fact,) = source.facts
    assert (fact.value, fact.was, fact.told) == ("15", "5", "15")


@given(st.integers(1, 30), st.lists(st.integers(0, 99), min_size=1, max_size=40))
@up_to(200)
def test_a_step_is_never_missed_and_never_told_twice(step: int, values: list[int]) -> None:
    """Between two pieces of news it is never more than a step away from the older one."""
    news, _ = told(f"count[0..99] news {step}", *values)
    anchor = values[0]
    for value, is_news in zip(values, news, strict=True):
        assert is_news == (abs(value - anchor) >= step)
        anchor = value if is_news else anchor


def test_a_rule_that_is_named_later_counts_from_then_on() -> None:
    _, source = told("count", 5)
    wanted = read_wanted({"it": "count news +10"})
    for number, (value, is_news) in enumerate([(90, False), (99, False), (100, True)]):
        source = taken(
            source, shapes_of_wanted(wanted), {"it": value}, NOW, bits_max=512,
            cause=f"f{number}", rules=rules_of_wanted(wanted),
        )  # fmt: skip
        assert source.newest is not None
        assert (source.newest.news == ("it",)) == is_news


@pytest.mark.parametrize(
    "text",
    [
        "one_of[a, b]", "one_of[at b, news c]", "count[0..99] at new news +5",
        "one_of[a, b] at /run/the end news to a|b", "yes_no at changed", "instant news always",
    ],
)  # fmt: skip
def test_what_is_written_is_read_back(text: str) -> None:
    (found,) = read_wanted({"it": text}).values()
    assert words_of_wanted(words_of(found.shape), found.where, found.rule) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("count news", "is no shape"),
        ("count news often", "is no rule for news: use never, always, to VALUE"),
        ("one_of[a, b] news +1", "is a step, and goes with numbers"),
        ("count news to 5", "'to' goes with yes_no, one_of and id_of"),
        ("one_of[a, b] news to c", "'to' must name values of it: a, b"),
        ("count news 0", "has a step of 0"),
    ],
)
def test_what_is_no_rule_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_wanted({"it": text})
    assert reason in caught.value.reason
    assert caught.value.field == "facts.it"


def test_a_hook_has_rules_too() -> None:
    (found,) = read_hooked({"ci": "one_of[red, green] at /ci/state news to red"}).values()
    assert found[1:] == ("/ci/state", "to red")
    with pytest.raises(InvalidInput, match="must be SHAPE at /JSON/POINTER"):
        read_hooked({"ci": "one_of[red, green] news to red"})
