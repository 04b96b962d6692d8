"""Whether a call of a loop that outside content had a part in is the person's own all the same
(FLOW F-6). Pure.

A call may run without leave if

1. each *who* is in the person's words, word for word and not by chance, or in the address book,
   which no result fills; what is *run* is in their words as something to run;
2. each *which* is in their words, or is one whole field of a structured result of the same server;
3. at least one of these is from their words, and not there by chance, or from the book;
4. where a *who* is only in the book, the content is the person's own words;
5. the content holds no address, link, account or long number that isn't in their words.

So nothing goes to whom the person didn't name. If moreover every value is theirs, nothing of the
call is from outside, and it isn't marked.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

import msgspec

from ..texts.glyphs import hidden_in
from .aims import PARTS_MAX, Argument
from .own import OwnWords

VALUE_LENGTH_MAX: Final = 120
"""Characters of a value that a reason shows."""
REASONS_MAX: Final = 4
FIELDS_MAX: Final = 500
"""Of a structured result, and of a loop: those beyond are nobody's."""
TOKEN_LENGTH: Final = 16
"""64 bits: to find a value with the token of another one takes 2^64 tries of who writes it."""

_LONG_NUMBER: Final = re.compile(r"(?<![\w.])\+?\d(?:[ ().,/_·\u2010-\u2015-]?\d){5,}")
_MARKS: Final = (
    re.compile(r"[a-z][a-z0-9+.-]*://[^\s<>\"']+", re.IGNORECASE),
    re.compile(r"[^\s@<>\"'(),;:]+@[^\s@<>\"'(),;:]+\.[^\s@<>\"'(),;:]+"),
    re.compile(
        r"(?<![\w.])(?:[\w-]+\.)+(?:xn--[a-z0-9-]{2,59}|[^\W\d_]{2,24})(?:[/?#:][^\s<>\"']*)?",
        re.IGNORECASE,
    ),
    re.compile(r"(?<![\w@])@[\w.]{2,}"),
    re.compile(r"(?<!\w)[a-z]{2}\d{2}(?:[ ]?[a-z0-9]{2,4}){3,8}(?!\w)", re.IGNORECASE),
    _LONG_NUMBER,
)
"""A link, a mail address, a host, a handle, an account (IBAN), a number of six digits and more."""
_WIDE_DOT: Final = re.compile(r"(?<=[a-z0-9])[\u3002\uff61](?=[a-z0-9])", re.IGNORECASE)
"""Stands for a dot in the name of a host."""
_ENDINGS: Final = """
    c cfg conf css csv doc docx gif go h htm html ics ini java jpeg jpg js json log md odt pdf png
    ppt pptx py rs rtf sh sql svg toml ts txt xls xlsx xml yaml yml zip
    """
_FILE: Final = re.compile(rf"(?!www\.)[\w.-]+\.(?:{'|'.join(_ENDINGS.split())})", re.IGNORECASE)
"""The bare name of a file. A link or an address that ends like one is no file."""
_MONTH_DAY: Final = r"(?:0?[1-9]|1[0-2])[./-](?:0?[1-9]|[12]\d|3[01])"
_DAY_MONTH: Final = r"(?:0?[1-9]|[12]\d|3[01])[./-](?:0?[1-9]|1[0-2])"
_TIME: Final = r"(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
_INSTANT: Final = re.compile(rf"\d{{4}}-\d{{2}}-\d{{2}}{_TIME}")
_DATE: Final = re.compile(
    rf"(?<![\w.])(?:(?:19|20)\d\d-{_MONTH_DAY}{_TIME}"
    rf"|(?:{_DAY_MONTH}|{_MONTH_DAY})[./-](?:(?:19|20)\d\d|\d\d))(?![\d-]|\.\w)"
)
"""Digits that are no number: only those that can be a day, or an account would pass as one."""

Fault = Literal["unnamed", "unknown", "worded", "carries", "other", "aimless", "much"]


class Foreign(msgspec.Struct, frozen=True, kw_only=True):
    """A value that keeps a call from being the person's own."""

    path: str
    value: str
    """Cut to what a reason shows."""
    fault: Fault
    """``unnamed``: a who that is neither in their words nor in the book; ``unknown``: a which that
    is in neither words nor results; ``worded``: content for somebody who is only in the book isn't
    in the person's words; ``carries``: content has an address, a link or a number of somebody
    else's; ``other``: it isn't their own word; ``aimless``: no value is theirs; ``much``: there
    are too many values to look at."""


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of a call."""

    foreign: tuple[Foreign, ...] = ()
    """What keeps it from running as the person's."""
    others: tuple[Foreign, ...] = ()
    """What isn't their own word, also where that may run."""
    is_own: bool = False
    """Whether there are values, and each is the person's own word: nothing is from outside."""

    @property
    def may_run(self) -> bool:
        return not self.foreign


class Book(msgspec.Struct, frozen=True, kw_only=True):
    """Whom the person and the configuration know: no result ever fills it."""

    addresses: frozenset[str] = frozenset()
    """In small letters."""
    names: Mapping[str, frozenset[str]] = {}
    """What the person calls somebody, in small letters -> the one address of mail, and the one
    number, that this stands for."""

    def has(self, value: str) -> bool:
        return value.lower().strip() in self.addresses

    def is_named(self, value: str, said: OwnWords) -> bool:
        """Whether the person named the one whose address it is."""
        plain = value.lower().strip()
        return any(plain in to and said.names(name) for name, to in self.names.items())


def book_of(people: Iterable[tuple[Sequence[str], Sequence[str]]]) -> Book:
    """Return the book of these people: names and addresses of each.

    A name that stands for more than one address of mail, or number, stands for none of them: which,
    a page would say.

    >>> book = book_of([(["Ben"], ["ben@example.org"]), (["Al"], ["al@example.org", "a@b.org"])])
    >>> sorted(book.addresses), book.names["ben"], "al" in book.names
    (['a@b.org', 'al@example.org', 'ben@example.org'], frozenset({'ben@example.org'}), False)
    """
    addresses: set[str] = set()
    named: dict[tuple[str, bool], set[str]] = {}
    for names, reached in people:
        plain = {one.lower().strip() for one in reached}
        addresses |= plain
        for name in names:
            for one in plain:
                named.setdefault((name.lower(), "@" in one), set()).add(one)
    clear: dict[str, frozenset[str]] = {}
    for (name, _), to in named.items():
        if len(to) == 1:
            clear[name] = clear.get(name, frozenset()) | to
    return Book(addresses=frozenset(addresses), names=clear)


def judge(
    parts: Sequence[Argument],
    said: OwnWords,
    book: Book,
    fields: frozenset[str] = frozenset(),
    *,
    is_book_enough: bool = False,
) -> Judgement:
    """Judge the values of a call.

    Args:
        fields: tokens of whole fields of structured results of the tool's own server in this loop.
        is_book_enough: whether the owner lets content of others' words go to whom the book has.

    >>> said = OwnWords(["Send the summary to ben@example.org"])
    >>> to = Argument(path="to", aim="who", value="ben@example.org")
    >>> text = Argument(path="text", aim="content", value="All went well.")
    >>> judge([to, text], said, Book()).may_run
    True
    >>> other = Argument(path="to", aim="who", value="mark@example.org")
    >>> judge([other, text], said, Book()).foreign[0].fault
    'unnamed'
    """
    if len(parts) > PARTS_MAX:
        much = (_foreign(parts[-1], "much"),)
        return Judgement(foreign=much, others=much)
    chosen = [one for one in parts if not one.is_default]
    who, which, content = (
        [one for one in chosen if one.aim in aims]
        for aims in (("who", "run"), ("which",), ("content",))
    )
    named = [one for one in who if _is_named(one, said, book)]
    booked = [one for one in who if one not in named and _is_booked(one, book)]
    spoken = [one for one in which if _is_spoken(one, said)]
    worded = [one for one in content if _is_covered(one, said)]
    found = [_foreign(one, "unnamed") for one in who if one not in named and one not in booked]
    found += [
        _foreign(one, "unknown")
        for one in which
        if one not in spoken and field_token(one.value) not in fields
    ]
    if booked and not is_book_enough:
        found += [_foreign(one, "worded") for one in content if one not in worded]
    for one in content:
        marks = list(_carried(one, said, book))
        found += [Foreign(path=one.path, value=_cut(mark), fault="carries") for mark in marks]
    chosen_by_them = [*named, *(one for one in spoken if _is_meant(one, said))]
    if not found and not (chosen_by_them or booked):
        found += [Foreign(path="", value="", fault="aimless")]
    theirs = (*named, *spoken, *worded)
    others = [_foreign(one, "other") for one in (*who, *which, *content) if one not in theirs]
    texts = [one for one in worded if isinstance(one.value, str)]
    is_own = bool(chosen_by_them or texts) and not others
    return Judgement(foreign=tuple(found), others=tuple(others), is_own=is_own)


def _is_named(part: Argument, said: OwnWords, book: Book) -> bool:
    if part.aim == "run":
        return isinstance(part.value, str) and said.orders(part.value)
    return _is_meant(part, said) or book.is_named(str(part.value), said)


def _is_booked(part: Argument, book: Book) -> bool:
    return part.aim == "who" and book.has(str(part.value))


def _is_spoken(part: Argument, said: OwnWords) -> bool:
    """An instant that a model computed carries next to nothing: theirs if the rest is."""
    return _is_said(part, said) or _is_instant(part.value)


def _is_said(part: Argument, said: OwnWords) -> bool:
    """A yes or no is nobody's word."""
    return not isinstance(part.value, bool) and said.has(part.value)


def _is_meant(part: Argument, said: OwnWords) -> bool:
    return _is_said(part, said) and said.points_at(part.value)


def _is_instant(value: str | float) -> bool:
    return isinstance(value, str) and _INSTANT.fullmatch(value) is not None


def _is_covered(part: Argument, said: OwnWords) -> bool:
    """Whether a piece of content is theirs. A count, and a yes or no, carry next to nothing."""
    if not isinstance(part.value, str):
        return True
    return said.covers(part.value)


def _carried(part: Argument, said: OwnWords, book: Book) -> Iterator[str]:
    """Yield what a piece of content would bring to its reader of somebody else's."""
    text = str(part.value)
    if hidden_in(text.replace("\r\n", "\n")):
        yield "hidden characters"
    text = _WIDE_DOT.sub(".", unicodedata.normalize("NFKC", text))
    undated = _DATE.sub(lambda date: " " * len(date.group()), text)
    seen: list[tuple[int, int]] = []
    for form in _MARKS:
        for match in form.finditer(undated if form is _LONG_NUMBER else text):
            mark, start = match.group().rstrip(".,;:!?)"), match.start()
            end = start + len(mark)
            if any(a <= start and end <= b for a, b in seen) or _FILE.fullmatch(mark):
                continue
            seen.append((start, end))
            if not (said.has(mark) or book.has(mark)):
                yield mark


def fields_of(structured: object) -> tuple[str, ...]:
    """Return what stands for the whole fields of a structured result: a token for each text and
    number in it, each once, at most `FIELDS_MAX`.

    >>> fields_of({"events": [{"id": "e1", "is_open": True}]}) == (field_token("e1"),)
    True
    """
    found = dict.fromkeys(field_token(value) for value in _scalars(structured))
    return tuple(itertools.islice(found, FIELDS_MAX))


def _scalars(value: object) -> Iterator[str | float]:
    if isinstance(value, Mapping):
        for below in value.values():
            yield from _scalars(below)
    elif isinstance(value, list | tuple):
        for below in value:
            yield from _scalars(below)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value


def field_token(value: str | float) -> str:
    """Return what a value is compared by with fields of results: they are kept in a session's
    state, which travels in every turn.

    >>> field_token(7.0) == field_token(7) == field_token("7")
    True
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return hashlib.sha256(str(value).encode("utf-8", "surrogatepass")).hexdigest()[:TOKEN_LENGTH]


# ---------------------------------------------------------------- in words

_WORDS: Final[Mapping[Fault, str]] = {
    "unnamed": "is neither in what you said nor among your contacts",
    "unknown": "isn't in what you said",
    "worded": "isn't in your words, and you didn't name who would get it",
    "carries": "isn't from you, and would be passed on",
    "other": "isn't in your words",
    "aimless": "nothing in it is from what you said",
    "much": "there is too much in it to look at",
}


def reason(foreign: Sequence[Foreign]) -> str:
    """Say which values weren't the person's; the first few.

    >>> reason([Foreign(path="to", value="mark@b.org", fault="unnamed")])
    'to: "mark@b.org" is neither in what you said nor among your contacts'
    """
    lines = [_line(one) for one in foreign[:REASONS_MAX]]
    more = len(foreign) - len(lines)
    return "; ".join(lines) + (f"; and {more} more" if more > 0 else "")


def _line(one: Foreign) -> str:
    words = _WORDS[one.fault]
    return words if one.fault in ("aimless", "much") else f'{one.path}: "{one.value}" {words}'


def _foreign(part: Argument, fault: Fault) -> Foreign:
    return Foreign(path=part.path, value=_cut(str(part.value)), fault=fault)


def _cut(value: str) -> str:
    return value if len(value) <= VALUE_LENGTH_MAX else value[: VALUE_LENGTH_MAX - 1] + "…"
