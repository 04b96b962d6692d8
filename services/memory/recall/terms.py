"""Makes the terms that full text search stores and asks for. Pure.

Both sides pass through the same cut, so what is written any way is found any other way: NFKC and
case folding, possessives off, irregular forms to their base, Chinese, Japanese, Korean and Thai as
single letters and pairs, each emoji as a word of its own, and the day of a memory as terms that
only a date in a question asks for. The tokenizer of the table (``porter unicode61``) does the rest.

A question becomes quoted words joined by OR: nothing that anybody writes is syntax.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from typing import Final

from . import dates, english, languages

TERMS_MAX: Final = 64
"""Of one search. A longer text is searched by its first so many distinct words."""
WORD_LENGTH_MAX: Final = 64
"""Letters of one term; the rest of a longer one is noise (a key, a picture in base64)."""

# Written without spaces, or with endings glued on: Thai to Khmer, kana, Han, Hangul.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
# Marks and letters of Indian scripts, and accents that no composed letter exists for.
_MARKED: Final = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963"
    "\u0966-\u0dff"
)
_EMOJI: Final = (
    "\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u2500-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\U0001f000-\U0001faff"
)
LONG: Final = 200.0
"""Letters of what full text is given, some 40 words; with twice as many a text counts half."""
LONG_UNSPACED: Final = 40.0
"""The same for a question in a script without spaces (ADR 78)."""
_NAME: Final = r"[^\W\d_][\w.'’-]{0,30}"
_SPEAKER: Final = re.compile(
    rf"\s*(?:[\[(][^\])]{{0,40}}[\])]\s*)?(?P<name>{_NAME}(?:\s{_NAME}){{0,2}})"
    r"(?:\s(?:said|asked|wrote|replied|answered)\s?[,:]|\s?:)\s"
)
_SPEAKER_LENGTH_MAX: Final = 150
"""``Name: ...``, ``Name said, ...``, perhaps after a date in brackets."""
_POSSESSIVE: Final = re.compile(
    r"\b(?!(?:What|Who|Where|When|How|Why|That|It|There|Here|Let|He|She)\b)[^\W\d_a-z][\w-]*['’]s\s+\w"
)
_SENTENCES: Final = re.compile(r"(?<=[.!?])\s+")
STATEMENT_WORDS_MIN: Final = 6
"""Words of a sentence that says more than how somebody takes what was said."""
_IS_MIXED: Final = re.compile(r"(?=.*\d)(?=.*[^\W\d]).{3,}")
_SUFFIX: Final = re.compile(r"['’]\w+$")
_SMALL: Final = frozenset(
    "的了吗呢是在我你他她们和就都也很不有这那么什哪谁のはがをにでとも은는이가을를에"
)
"""Single letters of those scripts that carry no topic."""


@functools.cache
def _token() -> re.Pattern[str]:
    """Return what parts a text: compiled for the first one, since that takes milliseconds."""
    return re.compile(
        rf"(?P<unspaced>[{_UNSPACED}]+)|(?P<emoji>[{_EMOJI}])"
        rf"|(?P<word>(?![{_UNSPACED}])[^\W_](?:(?![{_UNSPACED}])[^\W_]|[{_MARKED}])*(?:['’](?:s|t|d|m|ll|re|ve)\b)?)"
    )


@functools.cache
def _unspaced() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]")


def index_terms(text: str, happened_at: datetime | None = None) -> str:
    """Return what full text search stores of a memory.

    >>> index_terms("Ann's children went to Köln 🎉")
    'ann child go to köln u127881'
    >>> index_terms("我爱猫")
    '我 爱 猫 我爱 爱猫'
    """
    words = list(_words(text))
    if happened_at is not None:
        words += dates.terms_of(happened_at.date())
    return " ".join(words)


def searched(text: str) -> list[str]:
    """Return the distinct words that a search for `text` is about, in order.

    >>> searched("What did Melanie's kids buy in the shop?")
    ['melanie', 'kids', 'buy', 'shop']
    >>> searched("who am I?")
    ['who', 'am', 'i']
    """
    return list(_searched(text)[0])


@functools.lru_cache(maxsize=16)
def _searched(text: str) -> tuple[list[str], str]:
    """Return the words, and the language that they are in, if it's known and not English.

    Kept for a moment, since of a question it's asked several times; not to be changed.
    """
    words = list(dict.fromkeys(_words(text)))
    language = languages.language_of(words, english.STOP_WORDS)
    small = languages.small_words(words, language) if language else english.STOP_WORDS
    telling = [word for word in words if word not in small and word not in _SMALL]
    return (telling or words)[:TERMS_MAX], language


def searched_as_written(text: str) -> list[str]:
    """Return the same words as they are written, capitals and all, but none of unspaced scripts.

    >>> searched_as_written("What did Melanie's kids buy in the shop?")
    ['Melanie', 'kids', 'buy', 'shop']
    >>> searched_as_written("Marigold はどこ")
    ['Marigold']
    """
    kept = set(searched(text))
    spaced = (token.group() for token in _token().finditer(text) if not token["unspaced"])
    found = dict.fromkeys(_SUFFIX.sub("", token) for token in spaced)
    return [word for word in found if not kept.isdisjoint(_words(word))]


def is_possessive(question: str) -> bool:
    """Tell whether a question asks for what is somebody's.

    >>> is_possessive("What does Nora's cousin play?"), is_possessive("What's in Nora?")
    (True, False)
    """
    return _POSSESSIVE.search(question) is not None


@functools.lru_cache(maxsize=4096)
def has_statement(text: str) -> bool:
    """Tell whether a memory that ends as a question says something before it.

    >>> has_statement("Ann: I flew out to Seoul to see my daughter. How's your week going?")
    True
    >>> has_statement("Ann: Oh no, take care! What are they doing about it?")
    False
    """
    start = found.end() if (found := _SPEAKER.match(text[:_SPEAKER_LENGTH_MAX])) else 0
    said = (part for part in _SENTENCES.split(text[start:]) if not part.rstrip().endswith("?"))
    return any(len(part.split()) >= STATEMENT_WORDS_MIN for part in said)


def speaker(text: str) -> frozenset[str]:
    """Return the names of who is said to speak in a memory that is a turn of a conversation.

    >>> sorted(speaker("Ann Lee: I went to Rome")), speaker("I went to Rome: lovely")
    (['ann', 'lee'], frozenset())
    >>> speaker('Ann said, "I went to Rome"')
    frozenset({'ann'})
    """
    end = text.find(": ", 0, _SPEAKER_LENGTH_MAX)
    return _speaker(text[: end + 2] if end > 0 else text[:_SPEAKER_LENGTH_MAX])


@functools.lru_cache(maxsize=4096)
def _speaker(beginning: str) -> frozenset[str]:
    """Return the same of a beginning; those of a conversation are the same again and again."""
    found = _SPEAKER.match(beginning)
    return frozenset(_words(found["name"])) if found else frozenset()


def names(text: str) -> frozenset[str]:
    """Return the words of a memory that may be names: with a capital, or letters and digits.

    Those of who speaks aren't among them.

    >>> sorted(names("Ann: My cousin Tilda has the flat B12 in Bonn"))
    ['b12', 'bonn', 'tilda']
    """
    normal = unicodedata.normalize("NFKC", text)
    start = found.end() if (found := _SPEAKER.match(normal[:_SPEAKER_LENGTH_MAX])) else 0
    words = (token.group() for token in _token().finditer(normal, start) if token["word"])
    marked = (word for word in words if word != word.lower() or _IS_MIXED.fullmatch(word))
    return frozenset(_words(" ".join(marked))) - english.STOP_WORDS


def query(text: str, today: date | None = None) -> str:
    """Return the MATCH expression for a question; empty: there is nothing to search.

    Safe for any input. `today` gives "yesterday" and "last week" their days.

    >>> query('NEAR("a" b) OR content:DROP*')
    '"near" OR "b" OR "content" OR "drop"'
    """
    return any_of(asked(text, today))


def asked(text: str, today: date | None = None) -> list[str]:
    """Return the terms of that expression; what begins so, for one that ends in a star."""
    words, language = _searched(text)
    stems = (languages.stem(word, language) for word in words) if language else ()
    beginnings = [f"{stem}*" for stem in stems if stem]
    return [*words, *beginnings[: TERMS_MAX - len(words)], *dates.terms_asked(text, today)]


def match(words: str, facets: Iterable[Iterable[str]] = ()) -> str:
    """Return the whole MATCH expression: of each group of facets at least one must stand there.

    >>> match('"cat"', [["sa0"], ["typefact0", "typeevent0"]])
    '{terms} : ("cat") AND {facets} : ("sa0") AND {facets} : ("typefact0" OR "typeevent0")'
    """
    narrowed = (f"{{facets}} : ({any_of(group)})" for group in facets)
    return " AND ".join([f"{{terms}} : ({words})", *narrowed])


def long_from(words: str) -> float:
    """Return from how many letters on a text is found less for its length: it has many words.

    Args:
        words: a MATCH expression. In scripts without spaces each letter is a word, and each two.

    >>> long_from('"cat" OR "dog"'), long_from('"猫"')
    (200.0, 40.0)
    """
    return LONG_UNSPACED if _unspaced().search(words) else LONG


def any_of(words: Iterable[str]) -> str:
    """Return the expression for any of these terms, which have no quotes in them.

    >>> any_of(["cat", "dog*"])
    '"cat" OR "dog" *'
    """
    return " OR ".join(f'"{word[:-1]}" *' if word[-1] == "*" else f'"{word}"' for word in words)


def _words(text: str) -> Iterator[str]:
    folded = unicodedata.normalize("NFKC", text).casefold()
    for token in _token().finditer(folded):
        found = token.group()
        match token.lastgroup:
            case "unspaced":
                yield from found
                yield from (found[at : at + 2] for at in range(len(found) - 1))
            case "emoji":
                yield f"u{ord(found)}"
            case _:
                word = _SUFFIX.sub("", found)[:WORD_LENGTH_MAX]
                yield english.IRREGULAR.get(word, word)
