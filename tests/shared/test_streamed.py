"""What goes to somebody who can take nothing back (`vigil.texts.streamed`)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.texts.streamed import GAP, StreamedAnswer


def sent(*tries: str, said: str, pieces: int = 3) -> str:
    """Return what is sent of an answer that some tries wrote, piece by piece."""
    spoken = StreamedAnswer()
    for number, text in enumerate(tries):
        for at in range(0, len(text), pieces):
            spoken.token(number, 0, text[at : at + pieces])
    spoken.said(said)
    return spoken.text


@pytest.mark.parametrize(
    ("tries", "said", "wanted"),
    [
        ((), "It is 4.", "It is 4."),
        (("It is 4.",), "It is 4.", "It is 4."),
        (("It is 4.\n",), "It is 4.", "It is 4.\n"),
        (("It is", "It is 4."), "It is 4.", "It is 4."),
        (("It is 4.", "It is 4."), "It is 4.", "It is 4."),
        (("It is 4.", "It is"), "It is 4.", "It is 4."),
        (("Let me look.", "It is 4."), "It is 4.", f"Let me look.{GAP}It is 4."),
        (("It is 3.", "It is 4."), "It is 4.", f"It is 3.{GAP}It is 4."),
        (("It is 4. I'll look.",), "It is 4.", f"It is 4. I'll look.{GAP}It is 4."),
    ],
)
def test_what_a_model_writes_again_is_sent_once(
    tries: tuple[str, ...], said: str, wanted: str
) -> None:
    assert sent(*tries, said=said) == wanted


@given(st.lists(st.text("ab ", max_size=6), max_size=4), st.text("ab", min_size=1, max_size=6))
def test_what_is_said_stands_at_the_end(tries: list[str], said: str) -> None:
    """Whatever was tried before: whole, and behind it nothing but blanks that were streamed."""
    assert sent(*tries, said=said, pieces=1).rstrip().endswith(said)


@given(st.text("ab ", min_size=1, max_size=9), st.integers(1, 4))
def test_the_same_tries_are_one(text: str, count: int) -> None:
    said = text.strip() or "a"
    assert sent(*[said] * count, said=said) == said


def test_messages_that_follow_one_another_are_told_apart() -> None:
    spoken = StreamedAnswer()
    spoken.token(1, 0, "One.")
    spoken.said("One.")
    spoken.token(2, 0, "One")
    spoken.said("One.")
    assert spoken.text == f"One.{GAP}One."
