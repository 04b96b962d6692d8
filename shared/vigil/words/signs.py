"""What stands in a text beside its words: signs that could say what no word of it does. Pure.

A text is a person's own if its words are theirs. Dots and dashes, pictures or marks that no
alphabet has can be read, too; so only what sets words apart goes with them, or what the person
wrote themselves.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from ..texts.glyphs import is_unseen

AT_WORD_MAX: Final = 3
"""Signs at one place of a word: a bracket, a quote and a mark."""
ALONE_MAX: Final = 3
"""Signs of a text that stand alone, beside the bullets of its lines."""
_ALONE: Final = frozenset("-–—•*&+/|·.,;:!?…")
_SETS_APART: Final = frozenset(" \n\r\t")
_BULLET: Final = re.compile(r"^[ \t]*[-–—•*+][ \t](?=[ \t]*\w)", re.MULTILINE)


def foreign_signs(
    text: str, words: Sequence[tuple[int, int]], said: frozenset[str]
) -> tuple[str, ...]:
    """Return the signs of a text that aren't its writer's, each once.

    Args:
        words: where its words stand, in their order.
        said: the characters that the person wrote.

    >>> foreign_signs("- Call (Ray)!", [(2, 6), (8, 11)], frozenset())
    ()
    >>> foreign_signs("Call -.. .-.", [(0, 4)], frozenset()), foreign_signs("📞", [], frozenset())
    (('-..', '.-.'), ('📞',))
    """
    bullets = {match.end() - 2 for match in _BULLET.finditer(text)}
    found: dict[str, None] = {}
    alone: list[str] = []
    at = 0
    for start, end in (*words, (len(text), len(text))):
        for match in re.finditer(r"\S+", text[at:start]):
            piece, first = match.group(), at + match.start()
            is_at_word = (first == at > 0) or (first + len(piece) == start < len(text))
            if not is_at_word and piece in _ALONE and first not in bullets:
                alone.append(piece)
            elif len(piece) > (AT_WORD_MAX if is_at_word else 1):
                found[piece] = None
        found |= dict.fromkeys(one for one in text[at:start] if not (one in said or _is_plain(one)))
        at = end
    return (*found, " ".join(alone)) if len(alone) > ALONE_MAX else tuple(found)


def _is_plain(char: str) -> bool:
    """Whether a sign does nothing but set words apart."""
    if char.isascii():
        return char in _SETS_APART or char.isprintable()
    category = unicodedata.category(char)
    return (category[0] == "P" or category == "Sc") and not is_unseen(char)
