"""What a person can't see of a text that they have to trust, or that changes how they see it. Pure.

Whoever decides on a call, a grant or a skill reads what a model or a stranger wrote. There is one
list of characters that could hide something from them, for all places that show or take such texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final

_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters, marks and signs that show nothing."""
_PROSE: Final = frozenset("\n\t\u00a0\u200c\u200d\u202f\u3000\ufe0e\ufe0f")
"""What belongs into texts that people write: lines, blanks, joiners, and what picks a picture."""
KNOWN_MAX: Final = 10_000
"""Characters whose spelling is kept."""
_NEWER: Final = re.compile("[\U0001f000-\U0001faff\U00020000-\U0002fffd\U00030000-\U0003fffd]")
"""Pictures and ideographs: more come with each version of Unicode, and all of them can be seen."""
_SELECTORS: Final = frozenset("\ufe0e\ufe0f")
_JOINERS: Final = frozenset("\u200c\u200d")


def is_printable(text: str) -> bool:
    r"""Return whether all of a text can be seen, blanks too. `str.isprintable` takes for unseen
    what is newer than the Python: 3.11 knows none of the pictures that came since 2022.

    >>> is_printable("a pink heart: \U0001fa77"), is_printable("a\nb"), is_printable("a\u202e")
    (True, False, False)
    """
    return text.isprintable() or _NEWER.sub("", text).isprintable()


def is_unseen(char: str) -> bool:
    """Return whether a character shows nothing, or changes how others are shown; the blank doesn't.

    >>> [is_unseen(char) for char in ("a", " ", "é", "\\n", "\\u202e", "\\u3164", "\\ufe0f")]
    [False, False, False, True, True, True, True]
    """
    if " " <= char <= "~":
        return False
    is_selector = "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
    return is_selector or char in _BLANK or not is_printable(char)


def visible(text: str) -> str:
    r"""Write out what can't be seen, as JSON does.

    >>> print(visible("rm\u202e -rf\u200b\n"))
    rm\u202e -rf\u200b\n
    """
    return text if text.isascii() and text.isprintable() else text.translate(_WRITTEN)


class Spelling(dict[int, str]):
    """By code point, how a character is shown: a table for `str.translate`, which fills itself."""

    def __init__(self, spell: Callable[[str], str]) -> None:
        super().__init__()
        self._spell = spell

    def __missing__(self, code: int) -> str:
        spelt = self._spell(chr(code))
        if len(self) < KNOWN_MAX:
            self[code] = spelt
        return spelt


_WRITTEN: Final = Spelling(lambda char: json.dumps(char)[1:-1] if is_unseen(char) else char)


def hidden_in(text: str) -> str:
    r"""Return the first character by which a text that people wrote could say what nobody sees.

    Lines, blanks, joiners and the choice between two forms of a picture belong to such texts; of
    the last two one beside another would be a code, and so would joiners in plain letters.

    >>> hidden_in("Draw \u26a0\ufe0f where it's steep.\n"), ascii(hidden_in("Draw\U000e0041\n"))
    ('', "'\\U000e0041'")
    >>> hidden_in("\u0645\u06cc\u200c\u0631\u0648\u0645"), ascii(hidden_in("a\u200db\u200cc"))
    ('', "'\\u200d'")
    """
    before = ""
    for char in text:
        is_code = char in _SELECTORS and before in _SELECTORS
        is_code = is_code or (char in _JOINERS and (before.isascii() or before in _JOINERS))
        if is_code or (char not in _PROSE and is_unseen(char)):
            return char
        before = char
    return ""


_SEEN: Final = Spelling(lambda char: char if char in _PROSE or not is_unseen(char) else "")
_CODES: Final = re.compile(
    "(?<![^\x00-\x7f])[\u200c\u200d]+|(?<=[\u200c\u200d])[\u200c\u200d]+|(?<=[\ufe0e\ufe0f])[\ufe0e\ufe0f]+"
)


def without_hidden(text: str) -> str:
    r"""Leave out what a text that strangers wrote could say and nobody sees: for models read it.

    >>> without_hidden("Lun\u200bch\U000e0041\u202e?"), without_hidden("\u26a0\ufe0f").isascii()
    ('Lunch?', False)
    """
    return text if text.isascii() and text.isprintable() else _CODES.sub("", text.translate(_SEEN))
