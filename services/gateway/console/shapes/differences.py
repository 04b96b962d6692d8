"""How two texts differ, word by word, for a page. Pure."""

from __future__ import annotations

import difflib
import re
from typing import Final, Literal

Kind = Literal["same", "added", "removed"]
WORDS_MAX: Final = 2_000
"""Of each text; what follows is left out."""


def differences(old: str, new: str) -> list[tuple[Kind, str]]:
    """Return the pieces of both texts in their order, and of which they are.

    >>> differences("reads a file", "reads any file")
    [('same', 'reads '), ('removed', 'a'), ('added', 'any'), ('same', ' file')]
    """
    before, after = (re.findall(r"\s+|\S+", text)[:WORDS_MAX] for text in (old, new))
    found: list[tuple[Kind, str]] = []
    matcher = difflib.SequenceMatcher(a=before, b=after, autojunk=False)
    for what, a, b, c, d in matcher.get_opcodes():
        if what == "equal":
            found.append(("same", "".join(before[a:b])))
            continue
        found += [("removed", "".join(before[a:b]))] if b > a else []
        found += [("added", "".join(after[c:d]))] if d > c else []
    return found
