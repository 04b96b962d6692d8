"""What a person said, and whether a value is theirs. Pure.

A *value* (an address, a path, a name, an amount, a command) is theirs if they said it, word for
word. A *text* is theirs if each of its words that carries meaning is among theirs: a model may put
"Call your dentist" for "remind me to call my dentist", and can't put anything in that they didn't
say. What a model computes of their words, an instant, carries next to nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

from .denial import MARKS, bare_of, has_denial, holds_denial, is_denied
from .function_words import COMMON_NAMES, DAYS_AND_MONTHS, FUNCTION_WORDS, RUN_WORDS
from .quoted import unquoted
from .signs import foreign_signs

LENGTH_MAX: Final = 16_000
"""Characters of a person's words that count. Who says more hands in material, such as a page."""
KEPT_MAX: Final = 2 * LENGTH_MAX
"""Characters of all messages of one exchange together: the newest."""
COMPUTED_MAX: Final = 4
"""Instants of a text that a model may have computed: where more stand, their digits may say
something."""
WORDS_MAX: Final = 300
"""Of a text that is compared with what they deny; if they deny a thing, no longer one is theirs."""
PLACES_MAX: Final = 12
"""Where a word of theirs is looked at: the newest."""
NEAR: Final = 1_000
"""Characters around a word, in which a denial of it stands."""
_OPENING: Final = "\"'([{<«„“‘`´¿¡"
_CLOSING: Final = "\"')]}>»”’`´"
_ENDING: Final = ".,;:!?…"
_WORD: Final = re.compile(rf"[^\W_](?:[\w{MARKS}'’.@:/+&%=~#-]*[\w{MARKS}/])?")
_NUMBER: Final = re.compile(r"\d(?:[\d.,'’\u202f\u00a0]*\d)?")
_BEFORE: Final = re.compile(r"\S+$")
_AFTER: Final = re.compile(r"\S+")
_MARKED_NUMBER: Final = re.compile(r"[A-Z]{1,3}|[^\W\d_]+[:=]|\S*#")
"""What may stand right before a number: a currency, the name of what it says, the mark of one."""
_INSTANT: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[t ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:z|[+-]\d{2}:?\d{2})?)?"
    r"|\d{1,2}:\d{2}(?::\d{2})?(?:z|[+-]\d{2}:?\d{2})?"
)
_SHORT: Final = re.compile(r"[A-Za-z]{1,2}")
_UNSPACED: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
)
"""Scripts that put no space between words: Thai, Lao, Burmese, Khmer, kana and Han."""
_MORE_DAYS: Final = """
    utc am pm
    montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar märz mai juni juli
    oktober dezember uhr
    """
_CALENDAR: Final = DAYS_AND_MONTHS | frozenset(_MORE_DAYS.split())
"""Of an instant that a model computed."""
_SWITCHES: Final = frozenset(["all", "any", "on", "off", "yes", "no", "none", "true", "false"])
_NAMES: Final = frozenset(["ben", "can", "may", "mai", "sera", "will"])
"""Function words of one language that are people of another."""
_EMPTY: Final = (FUNCTION_WORDS | _SWITCHES) - _NAMES
"""Words that name nothing by themselves."""


def kept(texts: Iterable[str]) -> tuple[str, ...]:
    """Return what of some messages is kept as the person's words while they are answered: it stands
    in the session's state, which travels in every turn.

    >>> kept(["a" * 20_000, "Call Ben", "Why?\\n> Pay Eve"])
    ('Call Ben', 'Why?\\n')
    """
    found: list[str] = []
    left = KEPT_MAX
    own = [unquoted(text) for text in texts]
    for text in reversed([text for text in own if len(text) <= LENGTH_MAX]):
        left -= len(text)
        if left < 0:
            break
        found.append(text)
    return tuple(reversed(found))


class OwnWords:
    """What a person said in one exchange, or in the order that began it.

    >>> said = OwnWords(["Remind me to call my dentist, Dr. Ray, at ray@example.org."])
    >>> said.has("ray@example.org"), said.has("ray@example.or"), said.has("mark@example.org")
    (True, False, False)
    >>> said.covers("Call your dentist at 2026-11-29 09:00"), said.covers("Call your bank")
    (True, False)
    """

    def __init__(self, texts: Iterable[str]) -> None:
        said = [unquoted(text) for text in texts]
        self._as_said = tuple(text for text in said if len(text) <= LENGTH_MAX)
        self.texts = tuple(map(_plain, self._as_said))

    def __bool__(self) -> bool:
        return bool(self.texts)

    def has(self, value: str | float) -> bool:
        """Whether a value is theirs, word for word: bounded as a word is, and in a sentence that
        says what they want, not what they don't. What names nothing ("on", "it") is nobody's.

        >>> OwnWords(["Don't write to eve@example.org, write to"]).has("eve@example.org")
        False
        >>> OwnWords(["pay 1,500 to them"]).has(1500), OwnWords(["Go on."]).has("on")
        (True, False)
        """
        if not isinstance(value, str):
            return self._has_number(value)
        if not _names_something(value) or holds_denial(value):
            return False
        return any(self._found(text, value) for text in self._in_form_of(value))

    def points_at(self, value: str | float) -> bool:
        """Whether they meant a thing by a value, and it isn't in their words by chance: a page
        could choose the ticket by what they counted, or a short word by what they wrote.

        >>> said = OwnWords(["Close #7, sum up issue 12 in 3 sentences, by 5 pm. OK?"])
        >>> [said.points_at(one) for one in (7, 12, "12", 3, "3", 5, "ok", "issue 12")]
        [True, True, True, False, False, False, False, True]
        """
        if not self.has(value):
            return False
        if isinstance(value, str) and not _NUMBER.fullmatch(value):
            return not _SHORT.fullmatch(value)
        return any(
            match.group() == value if isinstance(value, str) else value in _read(match.group())
            for text in self.texts
            for match in _NUMBER.finditer(text)
            if not _is_counting(text, *match.span()) and not is_denied(text, *match.span())
        )

    def names(self, name: str) -> bool:
        """Whether they named somebody who is called so. A name that is a common word, too, counts
        where it is written as a name is, and doesn't begin a sentence.

        >>> said = OwnWords(["Will you mark it done, and tell ben?"])
        >>> said.names("will"), said.names("mark"), said.names("ben")
        (False, False, True)
        >>> OwnWords(["Send it to Mark."]).names("mark")
        True
        """
        if _plain(name).lower() not in COMMON_NAMES:
            return self.has(name)
        return any(
            _begins(text, match.start())
            and _ends(text, match.end())
            and not is_denied(text, *match.span())
            and not _begins_sentence(text, match.start())
            for text in self.texts
            for match in re.finditer(
                rf"(?<!\w){re.escape(_plain(name))}(?!\w)", text, re.IGNORECASE
            )
            if match.group()[0].isupper()
        )

    def orders(self, command: str) -> bool:
        """Whether they said to run something: quoted, on lines of its own, or after a word for it.

        >>> said = OwnWords(["Look why it fails, then run make test"])
        >>> said.orders("make test"), said.orders("Look why it fails")
        (True, False)
        """
        return bool(command.strip()) and any(
            self._found(text, command, is_ordered=True) for text in self._in_form_of(command)
        )

    def covers(self, text: str) -> bool:
        """Whether each word of a text that carries meaning is theirs."""
        return not self.foreign_words(text)

    def foreign_words(self, text: str) -> tuple[str, ...]:
        """Return the words of a text that aren't theirs, as they stand there, each once; and what
        isn't a word and could say something all the same: signs, and many instants."""
        text = _plain(text)
        found = list(_WORD.finditer(text))
        words = dict.fromkeys(match.group() for match in found)
        foreign = [word for word in words if not self._is_theirs(word)]
        foreign = foreign or self._turned_around(text, found)
        computed = [
            w for w in words if bare_of(w) not in self._said and _INSTANT.fullmatch(w.lower())
        ]
        signs = foreign_signs(text, [match.span() for match in found], self._characters)
        return (*foreign, *computed[COMPUTED_MAX:], *signs)

    # ------------------------------------------------------------ values

    def _in_form_of(self, value: str) -> tuple[str, ...]:
        """Return the texts as a value is to be looked for in them. One that isn't in the usual form
        of its characters looks like another: it counts only where it was said so."""
        return self.texts if _plain(value) == value else self._as_said

    def _found(self, text: str, value: str, *, is_ordered: bool = False) -> bool:
        is_exact = is_ordered or "/" in value or "\\" in value
        where, what = (text, value) if is_exact else (text.lower(), value.lower())
        start = where.find(what)
        while start >= 0:
            end = start + len(what)
            is_whole = _begins(where, start) and _ends(where, end)
            is_told = not is_ordered or _is_order_to_run(where, start, end)
            if is_whole and is_told and not is_denied(where, start, end):
                return True
            start = where.find(what, start + 1)
        return False

    def _has_number(self, value: float) -> bool:
        return float(value) in self._numbers

    @cached_property
    def _numbers(self) -> frozenset[float]:
        return frozenset(
            number
            for text in self.texts
            for match in _NUMBER.finditer(text)
            if _is_number(text, *match.span()) and not is_denied(text, *match.span())
            for number in _read(match.group())
        )

    # ------------------------------------------------------------ texts

    def _turned_around(self, text: str, words: Sequence[re.Match[str]]) -> list[str]:
        """Return what of a text says of something of theirs the contrary of what they said: what
        they denied without the denial, or the other way round."""
        if not (self._denies or has_denial(text)):
            return []
        is_denying = has_denial(text)
        said = {False: set[str](), True: set[str]()}
        for word in words[:WORDS_MAX]:
            bare = bare_of(word.group())
            is_here = is_denying and _is_denied_near(text, *word.span())
            if bare in FUNCTION_WORDS or bare in said[is_here] or bare not in self._places:
                continue
            there = self._places[bare][-PLACES_MAX:]
            if all(_is_denied_near(self.texts[n], *span) is not is_here for n, span in there):
                return [word.group()]
            said[is_here].add(bare)
        return [words[WORDS_MAX].group()] if len(words) > WORDS_MAX else []

    @cached_property
    def _denies(self) -> bool:
        return any(map(has_denial, self.texts))

    @cached_property
    def _places(self) -> dict[str, list[tuple[int, tuple[int, int]]]]:
        """Where each word of theirs stands: in which text, from where to where."""
        places: dict[str, list[tuple[int, tuple[int, int]]]] = {}
        for number, text in enumerate(self.texts):
            for match in _WORD.finditer(text):
                places.setdefault(bare_of(match.group()), []).append((number, match.span()))
        return places

    @cached_property
    def _said(self) -> frozenset[str]:
        return frozenset(
            bare_of(match.group()) for text in self.texts for match in _WORD.finditer(text)
        )

    @cached_property
    def _characters(self) -> frozenset[str]:
        return frozenset().union(*self.texts)

    @cached_property
    def _whole(self) -> str:
        return "\n".join(self.texts).lower()

    def _is_theirs(self, word: str) -> bool:
        bare = bare_of(word)
        if bare in self._said or bare in FUNCTION_WORDS or bare in _CALENDAR:
            return True
        if _INSTANT.fullmatch(bare):
            return True
        return bool(_UNSPACED.search(bare)) and bare in self._whole


def _is_denied_near(text: str, start: int, end: int) -> bool:
    """As `is_denied`, by what is near: texts that are long are looked at many times."""
    begin = max(0, start - NEAR)
    return is_denied(text[begin : end + NEAR], start - begin, end - begin)


def _names_something(value: str) -> bool:
    words = [bare_of(match.group()) for match in _WORD.finditer(value)]
    return any(word not in _EMPTY for word in words)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _begins(text: str, start: int) -> bool:
    return start == 0 or text[start - 1].isspace() or text[start - 1] in _OPENING


def _ends(text: str, end: int) -> bool:
    rest = text[end:].lstrip(_ENDING)
    return not rest or rest[0].isspace() or rest[0] in _CLOSING


def _begins_sentence(text: str, start: int) -> bool:
    before = text[:start].rstrip(" \t" + _OPENING)
    return not before or before[-1] in ".!?…\n:"


def _is_order_to_run(text: str, start: int, end: int) -> bool:
    before, after = text[:start].rstrip(" \t"), text[end : end + 1]
    if before.endswith(("`", '"', "'", "“", "„", "«")) and after in ("`", '"', "'", "”", "“", "»"):
        return True
    is_line = not before or before.endswith("\n")
    if is_line and (not after or after == "\n"):
        return True
    words = [bare_of(match.group()) for match in _WORD.finditer(before)]
    return bool(words) and words[-1] in RUN_WORDS


def _is_number(text: str, start: int, end: int) -> bool:
    """Whether digits are a number, and no part of a name, an address, a link or a code.

    >>> [_is_number(text, text.index("20"), text.index("20") + 2) for text in
    ... ("ben20@example.org", "INV-20", "https://a.example/20", "EUR20", "#20", "limit=20", "20km")]
    [False, False, False, True, True, True, True]
    """
    before, after = _BEFORE.search(text[:start]), _AFTER.match(text[end:])
    head = before.group().lstrip(_OPENING) if before else ""
    is_in_name = any(char.upper() != char.lower() for char in head)
    return "@" not in (after.group() if after else "") and (
        not is_in_name or bool(_MARKED_NUMBER.fullmatch(head))
    )


def _is_counting(text: str, start: int, end: int) -> bool:
    """Whether digits say how many of something, or when.

    >>> [_is_counting(text, text.index("5"), text.index("5") + 1) for text in
    ... ("in 5 words", "5pm", "5:30", "#5 words", "issue 5", "issue 5 on it", "$5", "5, not more")]
    [True, True, True, False, False, False, False, False]
    """
    if text[:start].endswith("#"):
        return False
    rest = text[end:].lstrip(_CLOSING + _OPENING)
    if rest[:1] == ":" and rest[1:2].isdigit():
        return True
    word = _WORD.match(rest.lstrip())
    return word is not None and bare_of(word.group()) not in FUNCTION_WORDS


def _read(digits: str) -> Iterator[float]:
    """Return what a written number may mean: its marks group digits, or part off a fraction."""
    whole = re.sub(r"[^\d]", "", digits)
    yield float(whole)
    marks = [mark for mark in digits if mark in ".,"]
    if marks:
        head, _, tail = digits.rpartition(marks[-1])
        yield float(f"{re.sub(r'[^0-9]', '', head) or '0'}.{re.sub(r'[^0-9]', '', tail)}")
