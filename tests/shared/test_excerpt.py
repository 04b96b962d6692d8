"""What is left out of a long result is counted truly, however often it was cut (X-1)."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from services.executor.sandbox.commands import CommandOutput
from vigil.contracts import encode
from vigil.texts import excerpt


def counted(text: str) -> int:
    """Return what a text says is left out."""
    (count,) = re.findall(r"\[\.\.\. (\d+) bytes left out \.\.\.\]", text)
    return int(count)


def kept(text: str) -> int:
    return len(re.sub(r"\n\[\.\.\. \d+ bytes left out \.\.\.\]\n", "", text).encode())


@given(st.text(), st.integers(min_value=1, max_value=64))
def test_what_is_cut_can_be_stored(text: str, bytes_max: int) -> None:
    """X-1, S14: whatever the tool said, also half a character."""
    told = excerpt.in_bytes(text, bytes_max)
    encode(told)
    data = text.encode("utf-8", "replace")
    if len(data) <= bytes_max:
        assert told.encode() == data
    else:
        assert kept(told) <= bytes_max
        assert counted(told) + kept(told) == len(data)


@given(
    st.text("aé🙂", min_size=30, max_size=60).map(lambda part: part * 100),
    st.integers(200, 2000),
    st.integers(2, 150),
)
def test_two_cuts_count_as_one(text: str, bytes_max: int, length_max: int) -> None:
    """X-1: 1,984,010 left out were told as 49,058: the second cut knew nothing of the first."""
    stored = excerpt.in_bytes(text, bytes_max)
    shown = excerpt.in_characters(stored, length_max)
    assert counted(shown) + kept(shown) == len(text.encode())
    head, tail = length_max // 2, length_max - length_max // 2
    if tail * 4 <= bytes_max // 2:  # as many characters are stored, whichever they are
        assert shown.startswith(text[:head])
        assert shown.endswith(text[-tail:])
    assert len(shown) <= length_max + len(excerpt.mark(len(text.encode())))


def test_a_second_cut_through_the_mark_of_the_first_counts_both() -> None:
    """Its line break was left, its number gone: of 6,427 bytes 56 were told."""
    text = f"{'a' * 18}{'🙂' * 12}" * 100
    shown = excerpt.in_characters(excerpt.in_bytes(text, 200), 77)
    assert counted(shown) + kept(shown) == len(text.encode())
    assert shown.count("left out") == 1


def test_a_command_is_counted_and_its_last_line_shown() -> None:
    """X-1: by the sandbox first; how it ended stands behind."""
    heard = CommandOutput(65_024)
    lines = b"".join(b"line %d\n" % number for number in range(200_000))
    heard.add(lines)
    shown = excerpt.in_characters(heard.text() + "[exit code 3]", 16_000)
    assert counted(shown) + kept(shown) == len(lines) + len("[exit code 3]")
    assert shown.startswith("line 0\n")
    assert shown.endswith("line 199999\n[exit code 3]")


def test_a_line_that_only_looks_like_it_is_not_counted() -> None:
    """X-1: a log that holds one, say: not in the middle."""
    text = "a" * 100 + excerpt.mark(10**9) + "b" * 9000
    assert counted(excerpt.in_characters(text, 20)) == len(text) - 20
