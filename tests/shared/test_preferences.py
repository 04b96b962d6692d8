"""Preferences: what each lesson does to a confidence, and what time does (SPEC G-3)."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.examples import up_to
from tests.support.goal_records import AT, lesson_of
from vigil.contracts.board import BoardPreference
from vigil.errors import InvalidInput
from vigil.preferences import confidence
from vigil.preferences.check import check
from vigil.preferences.confidence import LESSONS_MAX, confirmed, level_of
from vigil.preferences.shown import UNSURE_MAX, USED_MAX, shown

DAY = timedelta(days=1)
MONTH = 30 * DAY
confidence_at = partial(confidence.confidence_at, period=MONTH)
is_held = partial(confidence.is_held, period=MONTH)
is_used = partial(confidence.is_used, period=MONTH)
taught = partial(confidence.taught, period=MONTH)


def learned(*lessons: BoardPreference) -> BoardPreference:
    found: BoardPreference | None = None
    for one in lessons:
        found = taught(found, one)
    assert found is not None
    return found


def test_it_begins_tentative_and_each_confirmation_adds_a_quarter_of_what_is_missing() -> None:
    found, sure = learned(lesson_of()), [0.3]
    while sure[-1] < 0.95:
        found = taught(found, lesson_of())
        sure.append(confidence_at(found, AT))
    assert sure[:4] == [0.3, 0.475, 0.60625, 0.704687]
    assert [level_of(one) for one in sure[:4]] == ["tentative", "tentative", "likely", "used"]
    assert confidence_at(learned(found, *[lesson_of()] * 50), AT) == 0.95
    assert len(learned(found, *[lesson_of()] * 50).learned_from) == LESSONS_MAX


@given(st.floats(0, 0.95))
def test_a_confirmation_never_makes_less_sure(confidence: float) -> None:
    assert confidence <= confirmed(confidence) <= 0.95


LESSONS = st.lists(
    st.builds(
        lesson_of,
        st.sampled_from(("short", "long", 3, True, {"a": [1]})),
        st.sampled_from(("observed", "said", "corrected")),
        st.integers(0, 2000).map(lambda days: AT + days * DAY),
    ),
    min_size=1,
    max_size=12,
).map(lambda found: sorted(found, key=lambda one: one.created_at))


@given(LESSONS, st.lists(st.integers(0, 3000), max_size=8))
@up_to(300)
def test_what_time_takes_depends_on_dates_and_not_on_how_often_it_is_computed(
    lessons: list[BoardPreference], days: list[int]
) -> None:
    found = learned(*lessons)
    once = [confidence_at(found, AT + day * DAY) for day in sorted(days)]
    assert once == [confidence_at(found, AT + day * DAY) for day in sorted(days)]
    assert once == sorted(once, reverse=True)
    assert all(0 <= one <= 0.95 for one in once)
    end = found.last_confirmed_at + 90 * DAY
    lost = 0.0 if found.is_negative else 0.15
    assert confidence_at(found, end) == pytest.approx(max(0.0, found.confidence - lost))


def test_it_loses_five_hundredths_in_thirty_days() -> None:
    found = learned(lesson_of(how="said"))
    for days, sure in ((0, 0.9), (29.9, 0.9), (30, 0.85), (60, 0.8), (120, 0.7), (150, 0.65)):
        assert confidence_at(found, AT + days * DAY) == sure
    assert is_used(found, AT + 149 * DAY)
    assert not is_used(found, AT + 150 * DAY)
    assert is_held(found, AT + 539 * DAY)
    assert not is_held(found, AT + 540 * DAY)
    again = taught(found, lesson_of(how="observed", at=AT + 600 * DAY))
    assert confidence_at(again, AT + 600 * DAY) == 0.3, "what was forgotten begins anew"
    assert [one.how for one in again.learned_from] == ["said", "observed"]


@given(st.lists(st.sampled_from(("short", "long")), min_size=10, max_size=30), st.integers(0, 2000))
@up_to(200)
def test_a_correction_beats_ten_observations_before_and_after_it(
    values: list[Any], days: int
) -> None:
    """It stands, however long; only what the person says replaces it."""
    observed = [lesson_of(value) for value in values]
    corrected = learned(*observed, lesson_of("short", "corrected"))
    assert (corrected.value, corrected.is_negative, corrected.confidence) == ("short", True, 0.9)
    later = AT + days * DAY
    after = learned(corrected, *[lesson_of(value, at=later) for value in values])
    assert after == corrected
    assert confidence_at(after, later) == 0.9
    said = taught(after, lesson_of("short", "said", at=later))
    assert (said.value, said.is_negative, said.confidence) == ("short", False, 0.9)


def test_another_value_weakens_what_is_known_until_it_takes_its_place() -> None:
    found, sure = learned(lesson_of("short", "said")), []
    for _ in range(3):
        found = taught(found, lesson_of("long"))
        sure.append((found.value, confidence_at(found, AT)))
    assert sure == [("short", 0.675), ("short", 0.50625), ("long", 0.3)]
    month = AT + 31 * DAY
    doubted = taught(learned(lesson_of("short", "said")), lesson_of("long", at=month))
    assert confidence_at(doubted, month) == pytest.approx(0.85 * 0.75)
    assert confidence_at(doubted, AT + 60 * DAY) == pytest.approx(0.85 * 0.75 - 0.05)


def test_the_period_is_a_setting() -> None:
    """Seed 003, preference_decay_days: what is lost, used and forgotten goes by it."""
    found, quick = learned(lesson_of(how="said")), 3 * DAY
    assert confidence.confidence_at(found, AT + 15 * DAY, quick) == 0.65
    assert not confidence.is_used(found, AT + 15 * DAY, quick)
    assert not confidence.is_held(found, AT + 54 * DAY, quick)
    seen = lesson_of("long", at=AT + 15 * DAY)
    assert confidence.taught(found, seen, quick).value == "long", "it was sure too little"
    assert taught(found, seen).value == "short"


@given(
    st.lists(st.tuples(st.integers(1, 200), st.integers(1, 400)), min_size=1, max_size=6),
    st.integers(1, 400),
    st.integers(0, 2000),
)
@up_to(300)
def test_a_doubt_by_another_period_never_makes_surer(
    doubts: list[tuple[int, int]], period: int, later: int
) -> None:
    """A doubt is stored by the period of its day; what reads it by another stays near."""
    found = before = learned(lesson_of("short", "said"), *[lesson_of("short")] * 9)
    at = AT
    for days, by in doubts:
        at += days * DAY
        found = confidence.taught(found, lesson_of("long", at=at), by * DAY)
    if found.value == "short":
        sure = confidence.confidence_at(found, at + later * DAY, period * DAY)
        assert sure <= confidence.confidence_at(before, at + later * DAY, period * DAY)
        assert sure <= found.confidence


def test_one_exchange_teaches_once() -> None:
    """However often a model says so; the next one confirms."""
    found = learned(*[lesson_of(cause="e1")] * 5)
    assert confidence_at(found, AT) == 0.3
    assert confidence_at(taught(found, lesson_of(cause="e2")), AT) == 0.475


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"key": ""}, "key"),
        ({"key": "A key"}, "key"),
        ({"key": "x\n"}, "key"),
        ({"key": "x" * 65}, "key"),
        ({"value": ""}, "value"),
        ({"value": None}, "value"),
        ({"value": "x" * 1_000_000}, "value"),
        ({"value": {"a": ["\0"]}}, "value"),
        ({"owner": "a.b"}, "owner"),
    ],
)
def test_what_it_may_not_hold_is_told_by_field(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check(lesson_of(**changes))
    assert refused.value.field == field


def test_values_are_compared_as_json() -> None:
    def at(value: Any, when: datetime = AT) -> float:
        return confidence_at(learned(lesson_of({"b": 1, "a": 2}), lesson_of(value)), when)

    assert at({"a": 2, "b": 1}) == 0.475
    assert at({"a": 2, "b": True}) == 0.3


def test_the_surest_are_shown_and_what_is_not_sure_only_where_a_person_is() -> None:
    """G-3: so many at most, however many are known."""
    known = [
        replace(lesson_of(key=f"k{number:03}", value="a\nb"), confidence=confidence)
        for number, confidence in enumerate([0.9] * 100 + [0.4] * 100 + [0.0])
    ]
    removed = replace(lesson_of(key="gone"), confidence=0.95, is_removed=True)
    told = shown([*known, removed], AT, MONTH, asks=True)
    assert (len(told.used), len(told.unsure)) == (USED_MAX, UNSURE_MAX)
    assert told.used[0] == "communication, k000: a\nb"
    assert told.unsure[0].startswith("communication, k100:")
    assert shown([*known, removed], AT, MONTH, asks=False) == replace(told, unsure=())
