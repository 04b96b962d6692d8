"""What of the best a prompt is given (SPEC M-3): as much as fits, what says the same once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from services.memory.recall.selection import LINE_BYTES, passage, selected
from tests.support.scripted_memory import found, view
from vigil.memory.answer_text import line
from vigil.memory.questions import Hit

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


def hits(*contents: str, **of: Any) -> tuple[Hit, ...]:
    return found(*[view(number, text, **of) for number, text in enumerate(contents)]).hits


def texts(some: list[Hit]) -> list[str]:
    return [hit.text for hit in some]


def test_as_many_as_fit_and_always_one() -> None:
    some = hits(*(f"Memory {name} is forty bytes long, as it is" for name in "abcdefgh"))
    each = len(some[0].memory.content) + LINE_BYTES
    assert len(selected(some, "memory", NOW, 3 * each // 4 + 1)) == 3
    assert len(selected(some, "memory", NOW, 1)) == 1
    assert len(selected(some, "memory", NOW, 10_000)) == 8


def test_what_says_the_same_is_given_once_and_counted() -> None:
    """Each turn saved three times left three distinct of eight."""
    some = hits(
        "Ann: I moved to Berlin.",
        "ann: I moved to  BERLIN",
        "Ann: I moved to Lisbon.",
        "Ann: I moved to Berlin!",
        "The code is 4711, and the door is the second on the left of the long hall",
        "The code is 4712, and the door is the second on the left of the long hall",
    )
    taken = selected(some, "where?", NOW, 10_000)
    assert [(hit.text[:22], hit.times) for hit in taken] == [
        ("Ann: I moved to Berlin", 3),
        ("Ann: I moved to Lisbon", 1),
        ("The code is 4711, and ", 1),
        ("The code is 4712, and ", 1),
    ]


def test_what_says_it_again_is_counted_after_the_budget_is_used_up() -> None:
    """Recall ranks repeats below what says something else."""
    some = hits("Ann: I moved to Berlin.", "Ann: I have a dog", "Ann: I moved to Berlin.")
    (taken,) = selected(some, "where?", NOW, 20)
    assert (taken.text, taken.times) == ("Ann: I moved to Berlin.", 2)


def test_what_holds_no_more_is_left_out() -> None:
    ended = hits("Ann works at Acme", valid_to=NOW - timedelta(days=1))
    until = hits("Ann is in Rome", valid_to=NOW + timedelta(days=1))
    assert texts(selected((*ended, *until), "Ann", NOW, 1000)) == ["Ann is in Rome"]


def test_a_tool_tells_when_a_memory_holds() -> None:
    """Issue 19: a search finds also what holds no more, or not yet."""
    told = line(view(0, "Ann works at Acme", valid_from=NOW, valid_to=NOW + timedelta(days=1)))
    assert "holds from 2026-11-23, holds until 2026-11-24]" in told


def test_of_a_long_one_the_passage_that_answers() -> None:
    filler = "Nothing of note was said about the weather that day. " * 30
    long = f"{filler}The locker's code is 4711. It is in the hall. {filler}"
    (one,) = selected(hits(long), "what is the code of my locker?", NOW, 1000)
    assert "4711" in one.text
    assert len(one.text) <= 1004
    assert one.text.startswith("… ")
    assert one.text.endswith(" …")


@given(st.text(max_size=3000), st.sets(st.text(max_size=5), max_size=5), st.integers(20, 500))
def test_a_passage_fits_whatever_the_text(text: str, asked: set[str], limit: int) -> None:
    assert len(passage(text, asked, limit)) <= max(limit, 0) + len("…  …")
