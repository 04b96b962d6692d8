"""Whether a sentence names something as what is not wanted. Pure.

What stands before the place decides ("don't write to …", "instead of …"), and a negation right
after it ("… must not get it"). An item of a list is denied by what the list begins with.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Final

from .function_words import FUNCTION_WORDS, NEGATIONS, TURNS

MARKS: Final = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
"""What stands on a letter in Hebrew, Arabic and the scripts of India: a part of the word, which
``\\w`` doesn't take."""
_WORD: Final = re.compile(rf"[^\W_](?:[\w{MARKS}'’‘`´.@:/+&%=~#-]*[\w{MARKS}/])?")
_ABBREVIATED: Final = frozenset(
    ["mr", "mrs", "ms", "dr", "prof", "st", "hr", "fr", "sr", "sra", "dipl", "ing", "bzw", "vs"]
)
_PAUSE: Final = re.compile(r"(?P<end>[.!?…]\s+)|(?P<item>\n+|;)")
_CLAUSE: Final = re.compile(r"[,;:!?()\n]|\.(?:\s|$)")
_EACH: Final = "all any anybody anyone anything each every everybody everyone everything"
_ALL: Final = frozenset(_EACH.split())
_PHRASES: Final = """
    instead of, rather than, in lieu, invece di, invece che, lieu de, lieu du, lugar de, vez de,
    plaats van
    """
_IN_PLACE_OF: Final = frozenset(tuple(phrase.split()) for phrase in _PHRASES.split(","))
_LAST_OF_PHRASES: Final = frozenset(last for _, last in _IN_PLACE_OF)
_BUT: Final = frozenset(["but"])
_TO_FORGET: Final = """
    forget miss fail vergiss vergessen verpass oublie oubliez oublier olvides olvidar olvide
    dimenticare dimentica vergeet vergeten esqueça esqueças
    """
_REMIND: Final = frozenset(_TO_FORGET.split())
"""Denied, they ask for what follows: "don't forget to call"."""
_AFTER: Final = frozenset(["not", "never", "nicht", "nie", "niemals", "niet", "nooit"])
"""Negations that may follow what they deny."""
_OPENERS: Final = """
    and or that if so because when while i we he she they you und oder dass wenn weil ich wir et ou
    que y o e en of dat
    """
_NEW_CLAUSE: Final = frozenset(_OPENERS.split())


def bare_of(word: str) -> str:
    """Return a word as it is compared: in small letters, and without the ending of a possessive.
    Words that differ by more differ: to `str.casefold` ß is ss, and to the names of hosts it isn't.

    >>> bare_of("Ray's"), bare_of("e-mail"), bare_of("Donʼt")
    ('ray', 'e-mail', "don't")
    """
    plain = re.sub("[’‘ʼ´`]", "'", word.lower())
    return plain if is_negation(plain) else plain.removesuffix("'s").removesuffix("'")


def is_negation(word: str) -> bool:
    """Whether a word, without case, turns around what is said of what follows."""
    return word in NEGATIONS or word.endswith("n't")


def is_denied(text: str, start: int, end: int) -> bool:
    """Whether what stands in a text from `start` to `end` is named as what is not to be.

    >>> text = "write to ben, not to eve"
    >>> is_denied(text, 9, 12), is_denied(text, 21, 24)
    (False, True)
    """
    return _is_denied_before(_words(_sentence_before(text[:start]))) or _is_denied_after(text[end:])


def has_denial(text: str) -> bool:
    """Whether a text denies anything: without a word for that nothing in it is denied."""
    words = _words(text)
    return any(is_negation(one) or one in _LAST_OF_PHRASES or one in _BUT for one in words)


def holds_denial(value: str) -> bool:
    """Whether a value has in it that a part of it is not to be: then it's more than one value.

    >>> holds_denial("ben@example.org, not to eve@example.org"), holds_denial("Blue Room")
    (True, False)
    """
    words = _words(value)
    return any(map(is_negation, words)) or any(
        pair in _IN_PLACE_OF for pair in itertools.pairwise(words)
    )


def _is_denied_before(words: Sequence[str]) -> bool:
    denied = False
    for before, word in itertools.pairwise(("", *words)):
        if is_negation(word) and before.removeprefix("n'") in _REMIND:
            denied = False
        elif (
            is_negation(word)
            or (before, word) in _IN_PLACE_OF
            or (word == "but" and before in _ALL)
        ):
            denied = True
        elif word in TURNS or (word in _REMIND and is_negation(before)):
            denied = False
    return denied


def _is_denied_after(rest: str) -> bool:
    for word in _words(_CLAUSE.split(rest, maxsplit=1)[0]):
        if word in _AFTER or word.endswith("n't"):
            return True
        if word in _NEW_CLAUSE or word not in FUNCTION_WORDS:
            return False
    return False


def _sentence_before(text: str) -> str:
    """Return what of a text is in the sentence that it ends in. Lines and parts that hold nothing
    but an item go on with what is before them."""
    begin, pauses = 0, list(_PAUSE.finditer(text))
    for at in reversed(pauses):
        if at["item"] is None:
            if not _is_abbreviated(text[: at.start()]):
                begin = at.end()
                break
        elif not _is_bare_item(text[at.end() :]):
            begin = at.end()
            break
    return text[begin:]


def _is_abbreviated(text: str) -> bool:
    words = _words(text[-12:])
    return bool(words) and (words[-1] in _ABBREVIATED or "." in words[-1] or len(words[-1]) == 1)


def _is_bare_item(text: str) -> bool:
    return all(re.search(r"[@/\d]", word) or len(word) == 1 for word in _words(text))


def _words(text: str) -> list[str]:
    return [bare_of(match.group()) for match in _WORD.finditer(text)]


__all__ = ["MARKS", "bare_of", "has_denial", "holds_denial", "is_denied", "is_negation"]
