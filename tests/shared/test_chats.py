"""What channels to chat networks decide: parts of a text, and who is told that nobody hears."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import up_to
from vigil.channels.chats import place
from vigil.channels.chats.parts import PARTS_MAX, parts_of, split, units
from vigil.channels.chats.place import ChatPlace
from vigil.channels.mail.composition import OUTSIDE
from vigil.contracts import Said

NOW: Final = datetime(2026, 11, 28, 12, tzinfo=UTC)
LINES: Final = st.lists(
    st.one_of(
        st.sampled_from(["", "```", "```python", "~~~", "# a", "- b"]),
        st.text(st.sampled_from("ab é🙂`"), max_size=400),
    ),
    max_size=12,
)


def words_of(text: str) -> str:
    """Return what a text says, without blanks and the lines that open or close code."""
    kept = (one for one in text.split("\n") if not one.lstrip(" ").startswith(("```", "~~~")))
    return "".join("".join(kept).split())


@up_to(300)
@given(lines=LINES, room=st.integers(200, 600))
def test_no_part_is_too_long_and_no_word_is_lost(lines: list[str], room: int) -> None:
    text = "\n".join(lines)
    parts = split(text, room, lambda one: len(one.encode()))
    assert all(0 < len(one.encode()) <= room for one in parts)
    assert words_of("\n".join(parts)) == words_of(text)


@up_to(200)
@given(lines=LINES, times=st.integers(1, 30), is_tainted=st.booleans())
def test_what_is_too_long_even_in_parts_ends_with_where_all_of_it_is(
    lines: list[str], times: int, is_tainted: bool
) -> None:
    """A request that isn't shown whole has no buttons there: its page is named instead."""
    text = "\n\n".join(["\n".join(lines)] * times)
    said = Said(
        id="e", session_key="ann:vigil:main", text=text, at=NOW, caused_by="", turn_seq=1,
        asks="0a", is_tainted=is_tainted,
    )  # fmt: skip
    parts = parts_of(said, "https://home.example", 1_800, units)
    joined = "\n".join(parts.texts)
    assert all(0 < units(one) <= 1_800 for one in parts.texts)
    assert len(parts.texts) <= PARTS_MAX
    assert joined.count(OUTSIDE) == is_tainted
    is_cut = "https://home.example/console/inbox/0a " in joined
    assert parts.asks == ("" if is_cut else "0a")
    whole, shown = words_of(text), words_of(joined)
    if is_cut:
        assert whole.startswith(shown.partition("…(cut;")[0])
    else:
        assert shown.startswith(whole)


def test_code_that_is_cut_is_closed_and_opened_anew() -> None:
    lines = [f"line {number}" for number in range(60)]
    text = "\n".join(["Look:", "```python", *lines, "```", "", "That's it."])
    parts = split(text, 300)
    assert parts[0] == "Look:"
    assert parts[-1].endswith("```\n\nThat's it.")
    for part in parts[1:]:
        assert part.startswith("```python\nline ")
        assert part.count("```") == 2
    held = [one for part in parts for one in part.split("\n") if one.startswith("line ")]
    assert held == lines


def test_paragraphs_stay_whole_where_they_fit() -> None:
    first, second = "a " * 90, "b " * 90
    assert split(f"{first}\n\n{second}", 300) == [first, second]


@pytest.mark.parametrize(
    "marked", ["[the timetable](https://trains.example/a)", "**very late**", "`vigil why`"]
)
@given(st.integers(200, 400))
def test_a_link_and_marked_words_stay_in_one_part(marked: str, room: int) -> None:
    """They were cut at a blank: "[the" ended one part, an address in brackets began the next."""
    said = "The train of the morning is late, see "
    parts = split((said + marked + ". ") * 40, room)
    assert sum(one.count(marked) for one in parts) == 40
    assert all(len(one) <= room for one in parts)


def test_a_stranger_is_told_once_an_hour_and_many_strangers_not_without_end() -> None:
    now, is_told = place.refusing(ChatPlace(), "@mal:c.example", NOW)
    assert is_told
    again, is_told = place.refusing(now, "@mal:c.example", NOW + timedelta(minutes=59))
    assert (is_told, again.outside) == (False, 2)
    assert place.refusing(again, "@mal:c.example", NOW + timedelta(minutes=61))[1]
    # In a room of several it's told once, and to nobody who knows it already.
    assert not place.refusing(now, "@mal:c.example", NOW, room="!r")[1]
    there, is_told = place.refusing(now, "@eve:c.example", NOW, room="!r")
    assert is_told
    assert not place.refusing(there, "@bob:c.example", NOW, room="!r")[1]
    assert not place.refusing(there, "@eve:c.example", NOW)[1]
    assert place.refusing(there, "@bob:c.example", NOW)[1]
    found, told = ChatPlace(), 0
    for number in range(1_000):
        found, is_told = place.refusing(found, f"@{number}:c.example", NOW)
        told += is_told
    assert (told, found.outside, len(found.told)) == (200, 1_000, 200)


def test_what_was_dealt_with_is_known_for_a_while() -> None:
    found = ChatPlace()
    for number in range(600):
        found = place.heard(found, f"${number}")
    assert place.is_heard(found, "$599")
    assert not place.is_heard(found, "$0")


def test_four_times_the_text_is_four_times_the_measuring() -> None:
    """It was sixteen times: a second of a service's time for the longest answer without a blank."""

    def measured(length: int) -> int:
        lengths: list[int] = []

        def measure(text: str) -> int:
            lengths.append(len(text))
            return len(text)

        assert "".join(split("x" * length, 2_000, measure)) == "x" * length
        return sum(lengths)

    assert measured(200_000) < 5 * measured(50_000)
