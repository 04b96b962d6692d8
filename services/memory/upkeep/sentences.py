"""Where the sentences of a text end. Pure."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from vigil.words.function_words import DAYS_AND_MONTHS


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ABBREVIATED: Final = _set(
    "mr mrs ms dr prof st jr sr rev hon sen gov gen sgt capt lt no nr nos vol pp vs etc "
    "inc ltd co corp dept ca approx ave rd blvd mt ft tel ext hr fr bzw usw ggf evtl str jan feb "
    "apr jun jul aug sep sept oct nov dec"
)
_OF_A_DATE: Final = DAYS_AND_MONTHS | _set(
    "januar februar märz april mai juni juli august september oktober november dezember"
)


def has_several(content: str) -> bool:
    """Tell whether more than one thing seems to be said; in doubt, yes.

    >>> has_several("The code is 4711. Ann likes tea"), has_several("Dr. Smith's code is 4711.")
    (True, False)
    """
    return any(_ends(word, follower) for word, follower in pairwise(content.split()))


def _ends(word: str, follower: str) -> bool:
    """Whether a sentence ends with a word, if something follows it."""
    if word[-1] in "!?;":
        return True
    if not word.endswith("."):
        return False
    stem = word[:-1]
    if stem.isdigit():
        return follower.lower() not in _OF_A_DATE  # "am 12. Mai"
    return len(stem) > 1 and "." not in stem and stem.lower() not in _ABBREVIATED
