"""What can't be seen of a text (`vigil.texts.glyphs`), whichever Unicode the Python knows."""

from __future__ import annotations

import sys
import unicodedata
from typing import Final

import pytest

from services.executor.mcp import schemas
from vigil.texts.glyphs import hidden_in, is_printable, is_unseen, visible, without_hidden

NEWER: Final = "\U0001fa77\U0001fae8\U0002ebf0"
"""A pink heart and a shaking face of Unicode 15, an ideograph of 15.1; Python 3.11 knows 14."""
HIDING: Final = "\U000e0041\u202e\u2065\ufff0\ue000\U000f0000\U00013439\ud800\ufdd0"
"""A tag, an override, what is never assigned or never seen, private ones, a control of 15."""


def test_pictures_newer_than_the_python_are_seen_and_stay() -> None:
    assert is_printable(f"Much love {NEWER}")
    assert hidden_in(NEWER) == ""
    assert without_hidden(f"Much love {NEWER}") == f"Much love {NEWER}"
    assert visible(NEWER) == NEWER
    assert schemas.visible(NEWER) == NEWER


@pytest.mark.parametrize("char", HIDING)
def test_what_hides_is_told_whether_it_is_known_or_not(char: str) -> None:
    assert is_unseen(char)
    assert not is_printable(f"a{char}")
    assert without_hidden(f"a{char}b") == "ab"


def test_all_that_is_taken_for_seen_is_a_picture_or_an_ideograph() -> None:
    """By the Unicode that this Python knows: letters, marks of skin, signs, or nothing yet."""
    kinds = {
        unicodedata.category(chr(code))
        for code in range(sys.maxunicode + 1)
        if is_printable(chr(code)) and not chr(code).isprintable()
    }
    assert kinds <= {"Cn"}
