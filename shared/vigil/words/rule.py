"""Whether a call of a loop that outside content had a part in is the person's own all the same
(FLOW F-6). Pure.

A call may run without leave if

1. each *who* is in the person's words, word for word, or in the address book, which no result
   fills;
2. each *which* is in their words, or is one whole field of a structured result of the same server;
3. at least one of these is from their words or from the book;
4. where a *who* is only in the book, the content is the person's own words;
5. the content holds no address, link, account or long number that isn't in their words.

So nothing goes to whom the person didn't name. If moreover every value is theirs, nothing of the
call is from outside, and it isn't marked.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

import msgspec

from .aims import PARTS_MAX, Part
from .own import Words

VALUE_LENGTH_MAX: Final = 120
"""Characters of a value that a reason shows."""
REASONS_MAX: Final = 4

_MARKS: Final = (
    re.compile(r"[a-z][a-z0-9+.-]*://[^\s<>\"']+", re.IGNORECASE),
    re.compile(r"[^\s@<>\"'(),;:]+@[^\s@<>\"'(),;:]+\.[^\s@<>\"'(),;:]+"),
    re.compile(r"(?<![\w.])(?:[\w-]+\.)+[a-z]{2,24}(?:[/?#:][^\s<>\"']*)?", re.IGNORECASE),
    re.compile(r"(?<![\w@])@[\w.]{2,}"),
    re.compile(r"(?<!\w)[a-z]{2}\d{2}(?:[ ]?[a-z0-9]{2,4}){3,8}(?!\w)", re.IGNORECASE),
    re.compile(r"(?<![\w.])\+?\d(?:[ ().,/-]?\d){5,}"),
)
"""A link, a mail address, a host, a handle, an account (IBAN), a number of six digits and more."""
_ENDINGS: Final = """
    c cfg conf css csv doc docx gif go h htm html ics ini java jpeg jpg js json log md odt pdf png
    ppt pptx py rs rtf sh sql svg toml ts txt xls xlsx xml yaml yml zip
    """
_FILE_ENDINGS: Final = frozenset(_ENDINGS.split())
_INSTANT: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
)

Fault = Literal["unnamed", "unknown", "worded", "carries", "aimless", "much"]


class Foreign(msgspec.Struct, frozen=True, kw_only=True):
    """A value that keeps a call from being the person's own."""

    path: str
    value: str
    """Cut to what a reason shows."""
    fault: Fault
    """``unnamed``: a who that is neither in their words nor in the book; ``unknown``: a which that
    is in neither words nor results; ``worded``: content for somebody who is only in the book isn't
    in the person's words; ``carries``: content has an address, a link or a number of somebody
    else's; ``aimless``: no value is theirs; ``much``: there are too many values to look at."""


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of a call."""

    foreign: tuple[Foreign, ...] = ()
    is_own: bool = False
    """Whether there are values, and each is the person's own word: nothing is from outside."""

    @property
    def may_run(self) -> bool:
        return not self.foreign


class Book(msgspec.Struct, frozen=True, kw_only=True):
    """Whom the person and the configuration know: no result ever fills it."""

    addresses: frozenset[str] = frozenset()
    """Without case."""
    names: Mapping[str, str] = {}
    """What the person calls somebody, without case -> the one address that this stands for."""

    def has(self, value: str) -> bool:
        return value.casefold().strip() in self.addresses

    def is_named(self, value: str, said: Words) -> bool:
        """Whether the person named the one whose address it is."""
        plain = value.casefold().strip()
        return any(to == plain and said.has(name) for name, to in self.names.items())


def book_of(people: Iterable[tuple[Sequence[str], Sequence[str]]]) -> Book:
    """Return the book of these people: names and addresses of each.

    A name that stands for more than one address stands for none: which of them, a page would say.

    >>> book = book_of([(["Ben"], ["ben@example.org"]), (["Al"], ["al@example.org", "a@b.org"])])
    >>> sorted(book.addresses), dict(book.names)
    (['a@b.org', 'al@example.org', 'ben@example.org'], {'ben': 'ben@example.org'})
    """
    addresses: set[str] = set()
    named: dict[str, set[str]] = {}
    for names, reached in people:
        plain = {one.casefold().strip() for one in reached}
        addresses |= plain
        for name in names:
            named.setdefault(name.casefold(), set()).update(plain)
    names_ = {name: next(iter(to)) for name, to in named.items() if len(to) == 1}
    return Book(addresses=frozenset(addresses), names=names_)


def judge(
    parts: Sequence[Part],
    said: Words,
    book: Book = Book(),  # noqa: B008 - it is frozen
    fields: frozenset[str] = frozenset(),
    *,
    is_book_enough: bool = False,
) -> Judgement:
    """Judge the values of a call.

    Args:
        fields: whole fields of structured results of the tool's own server in this loop.
        is_book_enough: whether the owner lets content of others' words go to whom the book has.

    >>> said = Words(["Send the summary to ben@example.org"])
    >>> to = Part(path="to", aim="who", value="ben@example.org")
    >>> text = Part(path="text", aim="content", value="All went well.")
    >>> judge([to, text], said).may_run
    True
    >>> judge([Part(path="to", aim="who", value="mark@example.org"), text], said).foreign[0].fault
    'unnamed'
    """
    if len(parts) > PARTS_MAX:
        return Judgement(foreign=(_foreign(parts[-1], "much"),))
    who = [one for one in parts if one.aim == "who" and not one.is_default]
    which = [one for one in parts if one.aim == "which" and not one.is_default]
    content = [one for one in parts if one.aim == "content" and not one.is_default]
    named = [one for one in who if _is_named(one, said, book)]
    booked = [one for one in who if one not in named and book.has(str(one.value))]
    spoken = [one for one in which if _is_spoken(one, said)]
    found = [_foreign(one, "unnamed") for one in who if one not in named and one not in booked]
    found += [
        _foreign(one, "unknown")
        for one in which
        if one not in spoken and _as_field(one.value) not in fields
    ]
    if not found and not (named or booked or spoken):
        found += [Foreign(path="", value="", fault="aimless")]
    is_worded = all(_is_covered(one, said) for one in content)
    if booked and not is_book_enough:
        found += [_foreign(one, "worded") for one in content if not _is_covered(one, said)]
    for one in content:
        marks = list(_carried(one, said, book))
        found += [Foreign(path=one.path, value=_cut(mark), fault="carries") for mark in marks]
    is_own = (
        bool(who or which or content)
        and is_worded
        and len(named) == len(who)
        and len(spoken) == len(which)
        and all(one.fault == "aimless" for one in found)
    )
    return Judgement(foreign=tuple(found), is_own=is_own)


def _is_named(part: Part, said: Words, book: Book) -> bool:
    return _is_said(part, said) or book.is_named(str(part.value), said)


def _is_spoken(part: Part, said: Words) -> bool:
    """An instant that a model computed carries next to nothing: theirs if the rest is."""
    return _is_said(part, said) or _is_instant(part.value)


def _is_said(part: Part, said: Words) -> bool:
    """A yes or no is nobody's word."""
    return not isinstance(part.value, bool) and said.has(part.value)


def _is_instant(value: str | float) -> bool:
    return isinstance(value, str) and _INSTANT.fullmatch(value) is not None


def _is_covered(part: Part, said: Words) -> bool:
    """Whether a piece of content is theirs. A count, and a yes or no, carry next to nothing."""
    if not isinstance(part.value, str):
        return True
    return said.covers(part.value) and not _hidden(part.value)


def _hidden(text: str) -> bool:
    return any(unicodedata.category(each) in ("Cf", "Cc") and each not in "\n\t\r" for each in text)


def _carried(part: Part, said: Words, book: Book) -> Iterator[str]:
    """Yield what a piece of content would bring to its reader of somebody else's."""
    text = unicodedata.normalize("NFKC", str(part.value))
    if _hidden(text):
        yield "hidden characters"
    seen: set[str] = set()
    for mark in (
        match.group().rstrip(".,;:!?)") for form in _MARKS for match in form.finditer(text)
    ):
        if mark in seen or _INSTANT.fullmatch(mark) or mark.rpartition(".")[2] in _FILE_ENDINGS:
            continue
        seen.add(mark)
        if not (said.has(mark) or book.has(mark)):
            yield mark


def as_field(value: object) -> str | None:
    """Return a field of a structured result as values are compared with it; None: it's none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return _as_field(value)


def _as_field(value: str | float) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


# ---------------------------------------------------------------- in words

_WORDS: Final[Mapping[Fault, str]] = {
    "unnamed": "is neither in what you said nor among your contacts",
    "unknown": "isn't in what you said",
    "worded": "isn't in your words, and you didn't name who would get it",
    "carries": "isn't from you, and would be passed on",
    "aimless": "nothing in it is from what you said",
    "much": "there is too much in it to look at",
}


def reason(judgement: Judgement) -> str:
    """Say which values weren't the person's; the first few.

    >>> reason(Judgement(foreign=(Foreign(path="to", value="mark@b.org", fault="unnamed"),)))
    'to: "mark@b.org" is neither in what you said nor among your contacts'
    """
    lines = [_line(one) for one in judgement.foreign[:REASONS_MAX]]
    more = len(judgement.foreign) - len(lines)
    return "; ".join(lines) + (f"; and {more} more" if more > 0 else "")


def _line(one: Foreign) -> str:
    words = _WORDS[one.fault]
    return words if one.fault in ("aimless", "much") else f'{one.path}: "{one.value}" {words}'


def _foreign(part: Part, fault: Fault) -> Foreign:
    return Foreign(path=part.path, value=_cut(str(part.value)), fault=fault)


def _cut(value: str) -> str:
    return value if len(value) <= VALUE_LENGTH_MAX else value[: VALUE_LENGTH_MAX - 1] + "…"
