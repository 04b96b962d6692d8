"""Days as search terms: when a memory happened, and the dates that a question names. Pure.

A question that says "in May 2023" or "last Friday" means when something was told, which stands in
no text. So every memory carries terms for its year, month, week and day, in a form that no text
has, and a date in a question asks for the narrowest of them that it knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

from .english import MONTHS

_MONTH: Final = "|".join(sorted(MONTHS, key=len, reverse=True))
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR: Final = r"(?P<year>(?:19|20)\d\d)"
_FORMS: Final = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"\b{_YEAR}-(?P<number>\d{{1,2}})-(?P<day>\d{{1,2}})\b",
        rf"\b{_DAY}(?:\s+of)?\s+(?P<month>{_MONTH})\b\.?(?:,?\s+{_YEAR}\b)?",
        rf"\b(?P<month>{_MONTH})\b\.?\s+{_DAY}\b(?!\d)(?:,?\s+{_YEAR}\b)?",
        rf"\b(?P<month>{_MONTH})\b\.?,?\s+(?:of\s+)?{_YEAR}\b",
        rf"\b(?:in|during|since|until|by|last|this|early|mid|late|of)[\s-]+(?P<month>{_MONTH})\b",
        rf"\b{_YEAR}\b",
    )
)
_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_RELATIVE: Final = re.compile(
    r"\b(?:(?P<word>today|yesterday|tonight|this morning)|(?P<which>last|this|past)\s+"
    rf"(?P<unit>week|weekend|month|year|{'|'.join(_WEEKDAYS)})"
    r"|(?P<count>\d{1,3})\s+(?P<ago>day|week)s?\s+ago)\b",
    re.IGNORECASE,
)


def terms_of(day: date) -> list[str]:
    """Return the terms of a day.

    >>> terms_of(date(2023, 5, 8))
    ['y2023', 'm5', 'm202305', 'd20230508']
    """
    return [f"y{day.year}", f"m{day.month}", f"m{day:%Y%m}", f"d{day:%Y%m%d}"]


def terms_asked(text: str, today: date | None = None) -> list[str]:
    """Return the terms of the dates that a question names; `today` is what "yesterday" counts from.

    What happened on a day is often told on the next, so that one is asked for, too.

    >>> terms_asked("What did Ann do on 7 May 2023?")
    ['d20230507', 'd20230508', 'm202305']
    >>> terms_asked("and in May?"), terms_asked("May I?"), terms_asked("in 2022")
    (['m5'], [], ['y2022'])
    >>> terms_asked("what was it yesterday?", date(2023, 3, 1))
    ['d20230228']
    """
    found = [*_named(text), *(_relative(text, today) if today else ())]
    return list(dict.fromkeys(found))


def nearness(day: date, asked: frozenset[str]) -> float:
    """Return how well a day is one that a question names.

    >>> may = frozenset(terms_asked("on 7 May 2023?"))
    >>> nearness(date(2023, 5, 7), may), nearness(date(2023, 5, 9), may)
    (1.0, 0.5)
    >>> nearness(date(2023, 6, 7), may)
    0.0
    """
    found = asked.intersection(terms_of(day))
    if any(term.startswith("d") for term in found):
        return 1.0
    return 0.5 if found else 0.0


def _named(text: str) -> Iterator[str]:
    taken: list[tuple[int, int]] = []
    for form in _FORMS:
        for found in form.finditer(text):
            start, end = found.span()
            if all(end <= a or start >= b for a, b in taken):
                taken.append((start, end))
                yield from _terms(found.groupdict())


def _terms(parts: dict[str, str | None]) -> Iterator[str]:
    year = int(parts.get("year") or 0)
    month = int(parts.get("number") or 0) or MONTHS.get((parts.get("month") or "").casefold(), 0)
    day = _date(year, month, int(parts.get("day") or 0))
    if day is not None:
        yield from (f"d{day:%Y%m%d}", f"d{day + timedelta(days=1):%Y%m%d}")
    if not 1 <= month <= 12:
        if year:
            yield f"y{year}"
    elif year:
        yield f"m{year}{month:02d}"
    else:
        yield f"m{month}"


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _relative(text: str, today: date) -> Iterator[str]:
    for found in _RELATIVE.finditer(text):
        yield from _back(found, today)


def _back(found: re.Match[str], today: date) -> Iterator[str]:
    word = (found["word"] or "").casefold()
    unit = (found["unit"] or "").casefold()
    is_last = (found["which"] or "").casefold() != "this"
    monday = today - timedelta(days=today.weekday())
    if word:
        yield from _days(today - timedelta(days=word == "yesterday"), 1)
    elif found["count"]:
        is_week = found["ago"].casefold() == "week"
        back = timedelta(days=int(found["count"]) * (7 if is_week else 1))
        yield from _days(today - back - timedelta(days=3 * is_week), 7 if is_week else 1)
    elif unit == "week":
        yield from _days(monday - timedelta(days=7 * is_last), 7)
    elif unit == "weekend":
        yield from _days(monday + timedelta(days=5 - 7 * is_last), 2)
    elif unit == "month":
        last = today.replace(day=1) - timedelta(days=is_last)
        yield f"m{last:%Y%m}"
    elif unit == "year":
        yield f"y{today.year - is_last}"
    else:
        ago = (today.weekday() - _WEEKDAYS.index(unit)) % 7 or 7
        yield from _days(today - timedelta(days=ago), 1)


def _days(first: date, count: int) -> Iterator[str]:
    yield from (f"d{first + timedelta(days=at):%Y%m%d}" for at in range(count))
