"""What becomes of the facts that a source tells, and how much they may tell a day (F-10). Pure.

Who says the same as the time before tells next to nothing; who says something else tells as much as
the shape holds. It is counted as a code would write it: 0.1 bits of a fact that is as before (to be
left out counts as a value, too), else 4 and the bits of its shape. These lengths fit a prefix code:
15/16 for "as before", the rest shared by all others. So with N bits no more than 2^N different days
can be told, whatever the source tries. If there is no room for what it tells, nothing more is taken
on that UTC day: else it could choose, by what has no room, and wouldn't pay for it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from datetime import UTC, datetime
from math import ceil, log2
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec.structs import replace

from ..contracts.board import FactFill, FactShape, KnownFact, SourceFacts
from ..errors import InvalidInput
from .news import counted_from, has_steps, is_news
from .shape import choices
from .value import fit

HUNDREDTHS: Final = 100
SAME: Final = ceil(HUNDREDTHS * log2(16 / 15))
"""Of a fact that is as the time before, in hundredths of a bit."""
OTHER_BITS: Final = 4
"""Of one that isn't, beside those of its shape."""
NOT_TOLD: Final = "it wasn't told"
RARE_BITS: Final = 5
"""Of a fact that an event has at all, of a source whose events have it now and then."""
NO_RULES: Final[Mapping[str, str]] = MappingProxyType({})
NO_SHAPES: Final[Mapping[str, FactShape]] = MappingProxyType({})
FULL: Final = (
    "its source told as much as it may a day ({bits} bits); it's taken again from 00:00 UTC"
)


class FittedFacts(NamedTuple):
    """What a source told, as far as it fits."""

    values: dict[str, str]
    left_out: dict[str, str]


def read(
    shapes: Mapping[str, FactShape], given: Mapping[str, object], now: datetime
) -> FittedFacts:
    """Fit what is told to the shapes; what isn't named by them is nothing.

    >>> from vigil.facts.shape import read_shapes
    >>> now = datetime(2026, 11, 20, tzinfo=UTC)
    >>> read(read_shapes({"red": "yes_no", "n": "count"}), {"red": True, "x": "Obey me"}, now)
    FittedFacts(values={'red': 'yes'}, left_out={'n': "it wasn't told"})
    """
    values: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for name, shape in shapes.items():
        if given.get(name) is None:
            left_out[name] = NOT_TOLD
            continue
        try:
            values[name] = fit(name, given[name], shape, now)
        except InvalidInput as error:
            left_out[name] = error.reason
    return FittedFacts(values, left_out)


def cost(before: KnownFact | None, shape: FactShape, value: str | None) -> int:
    """Return how much one fact tells, in hundredths of a bit.

    Args:
        before: None: it was never told.
        value: None: it is left out.

    >>> from vigil.contracts.board import YesNo
    >>> cost(None, YesNo(), None), cost(None, YesNo(), "yes")
    (10, 500)
    """
    known = before if before is not None and before.shape == shape else None
    was = known.value if known is not None and not known.is_left_out else None
    return SAME if was == value else ceil(HUNDREDTHS * (OTHER_BITS + log2(choices(shape))))


def cost_if_there(before: KnownFact | None, shape: FactShape, value: str | None) -> int:
    """Return how much a fact tells of a source whose events have some of its facts, and others not:
    one that isn't there tells next to nothing.

    Args:
        before, value: as of `cost`.
    """
    if value is None:
        return SAME
    is_same = before is not None and before.shape == shape and before.value == value
    return ceil(HUNDREDTHS * (RARE_BITS + (0 if is_same else log2(choices(shape)))))


def taken(
    source: SourceFacts,
    shapes: Mapping[str, FactShape],
    given: Mapping[str, object],
    now: datetime,
    *,
    bits_max: int,
    cause: str,
    session: str = "",
    rules: Mapping[str, str] = NO_RULES,
    others: Mapping[str, FactShape] = NO_SHAPES,
    is_event: bool = False,
) -> SourceFacts:
    """Return a source with what it tells now; the same cause changes nothing twice.

    Args:
        shapes: that are told now, in their order.
        bits_max: that it may tell a UTC day.
        rules: which changes of them are news, where that was named.
        others: that it has beside them, told at other times: they stay, and all else is dropped.
        is_event: whether it tells by an event, which may have any of them: what it hasn't stays.
    """
    if source.newest is not None and source.newest.cause == cause:
        return source
    fitted, day = read(shapes, given, now), now.astimezone(UTC).date().isoformat()
    named = {**others, **shapes}
    known = {one.name: one for one in source.facts if named.get(one.name) == one.shape}
    spent, was_full = (source.spent, source.is_full) if source.day == day else (0, False)
    price = cost_if_there if is_event else cost
    needed = sum(price(known.get(one), shapes[one], fitted.values.get(one)) for one in shapes)
    is_full = was_full or spent + needed > bits_max * HUNDREDTHS
    if is_full:
        fitted = FittedFacts({}, dict.fromkeys(shapes, FULL.format(bits=bits_max)))
    stays = frozenset(shapes if is_full else fitted.left_out if is_event else ())
    after = {
        name: known.get(name)
        if name in stays
        else _after(known.get(name), name, shape, fitted, now)
        for name, shape in shapes.items()
    }
    changed = tuple(name for name in fitted.values if _is_new(known.get(name), after[name]))
    news = [name for name in changed if _is_news(rules, known.get(name), after[name])]
    after = {name: _noted(one, rules.get(name, ""), name in news) for name, one in after.items()}
    kept = {name: known.get(name) for name in others if name not in shapes}
    return replace(
        source,
        facts=tuple(one for one in (*after.values(), *kept.values()) if one is not None),
        day=day,
        spent=spent if is_full else spent + needed,
        is_full=is_full,
        newest=FactFill(
            cause=cause,
            session=session,
            values=fitted.values,
            changed=changed,
            news=tuple(news),
            left_out=fitted.left_out,
        ),
    )


def with_looked(
    told: FactFill | None, source: SourceFacts | None, looked: Container[str], since: datetime
) -> FactFill | None:
    """Return what came of the facts of a row by a run, and by the look that it began with: what
    changed by that look was dealt with as it was taken.

    Args:
        told: by the run; None: nothing.
        source: as it is known after both.
        looked: names of those that looks tell.
        since: when it was due: what was told before isn't of that look.
    """
    facts = () if source is None else source.facts
    there = [one for one in facts if one.name in looked and one.at >= since]
    seen = {one.name: one.value for one in there if not one.is_left_out}
    left_out = {one.name: NOT_TOLD for one in there if one.is_left_out}
    if not seen and not left_out:
        return told
    told = told or FactFill(cause="")
    return replace(told, values=seen | told.values, left_out=left_out | told.left_out)


def _after(
    before: KnownFact | None, name: str, shape: FactShape, fitted: FittedFacts, now: datetime
) -> KnownFact | None:
    """Return a fact as it is known from now on; None: it isn't."""
    value = fitted.values.get(name)
    if value is None:
        return before and replace(before, is_left_out=True)
    if before is not None and before.value == value:
        return replace(before, at=now, is_left_out=False)
    was, told_as = ("", "") if before is None else (before.value, before.told)
    return KnownFact(name=name, shape=shape, value=value, since=now, at=now, was=was, told=told_as)


def _is_news(rules: Mapping[str, str], before: KnownFact | None, after: KnownFact | None) -> bool:
    return after is not None and is_news(rules.get(after.name, ""), before, after)


def _noted(fact: KnownFact | None, rule: str, is_told: bool) -> KnownFact | None:
    """Return a fact that knows from where on its steps count."""
    if fact is None:
        return None
    if not has_steps(rule):
        return replace(fact, told="") if fact.told else fact
    if not is_told:
        return replace(fact, told=counted_from(rule, fact.told, fact.value))
    return replace(fact, told=fact.value, was=fact.told)  # what it moved from, by more than a step


def _is_new(before: KnownFact | None, after: KnownFact | None) -> bool:
    return before is None or after is None or before.value != after.value
