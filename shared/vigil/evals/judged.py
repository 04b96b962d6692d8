"""What happened in a span of a story, and which expectations it doesn't hold. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec

from . import moments
from .story import Expected, pattern

SHOWN: Final = 160
MICRO: Final = 1_000_000


class SaidMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent said to the person."""

    at: datetime
    text: str
    is_unasked: bool = False


class ToolWish(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the agent wanted to run, and with what."""

    tool: str
    given: dict[str, Any] = {}


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """All that can be looked at of a span."""

    began_at: datetime
    messages: tuple[SaidMessage, ...] = ()
    calls: tuple[ToolWish, ...] = ()
    ran: tuple[ToolWish, ...] = ()
    """Those that a service ran."""
    asked: tuple[ToolWish, ...] = ()
    """Those for which leave was asked."""
    memories: tuple[str, ...] = ()
    """That stand at its end."""
    planned: tuple[str, ...] = ()
    """Reasons of the follow-ups that are open at its end."""
    model_calls: int = 0
    tokens: int = 0
    micro_usd: int | None = 0
    """None: a model without prices was asked."""
    failures: tuple[str, ...] = ()
    """Why a model gave no answer, where it gave none."""


class Missed(msgspec.Struct, frozen=True, kw_only=True):
    """An expectation that doesn't hold."""

    field: str
    expected: str
    found: str


def missed(expected: Expected, found: Happened, zone: ZoneInfo) -> tuple[Missed, ...]:
    """Return what doesn't hold of a span, in the order of the fields."""
    return tuple(_missed(expected, found, zone))


def _missed(expected: Expected, found: Happened, zone: ZoneInfo) -> Iterator[Missed]:
    unasked = [one for one in found.messages if one.is_unasked]
    is_late = _untimely(expected, found.began_at, zone)
    yield from _absent("said", expected.said, found.messages, is_late)
    yield from _present("not_said", expected.not_said, [one.text for one in found.messages])
    yield from _absent("told", expected.told, unasked, is_late)
    if expected.quiet and unasked:
        yield Missed(
            field="quiet", expected="nothing unasked", found=_shown(m.text for m in unasked)
        )
    yield from _beyond("messages_max", expected.messages_max, len(found.messages))
    yield from _uncalled("called", expected.called, found.calls)
    yield from _unwanted("not_called", expected.not_called, found.calls)
    yield from _uncalled("ran", expected.ran, found.ran)
    yield from _unwanted("not_ran", expected.not_ran, found.ran)
    yield from _uncalled("asked", expected.asked, found.asked)
    yield from _unwanted("not_asked", expected.not_asked, found.asked)
    for text in expected.remembered:
        if not any(pattern(text).search(memory) for memory in found.memories):
            yield Missed(field="remembered", expected=text, found=_shown(found.memories))
    yield from _present("not_remembered", expected.not_remembered, found.memories)
    if expected.planned is not None and expected.planned != len(found.planned):
        number = f"{len(found.planned)}: {_shown(found.planned)}"
        yield Missed(field="planned", expected=str(expected.planned), found=number)
    yield from _beyond("calls_max", expected.calls_max, found.model_calls)
    yield from _beyond("tokens_max", expected.tokens_max, found.tokens)
    if expected.usd_max is not None:
        if found.micro_usd is None:
            yield Missed(
                field="usd_max", expected=f"{expected.usd_max:g}", found="no price is known"
            )
        else:
            yield from _beyond("usd_max", expected.usd_max, found.micro_usd / MICRO)


def _untimely(expected: Expected, began_at: datetime, zone: ZoneInfo) -> Callable[[datetime], bool]:
    by = moments.moment("by", expected.by, began_at, zone) if expected.by else None
    first = (
        moments.moment("not_before", expected.not_before, began_at, zone)
        if expected.not_before
        else None
    )
    return lambda at: (by is not None and at > by) or (first is not None and at < first)


def _absent(
    field: str,
    texts: Iterable[str],
    messages: Sequence[SaidMessage],
    is_untimely: Callable[[datetime], bool],
) -> Iterator[Missed]:
    for text in texts:
        saying = [one for one in messages if pattern(text).search(one.text)]
        if not saying:
            yield Missed(field=field, expected=text, found=_shown(one.text for one in messages))
        elif wrong := [one for one in saying if is_untimely(one.at)]:
            at = ", ".join(f"{one.at:%a %H:%M} UTC" for one in wrong)
            yield Missed(field=field, expected=f"{text} in time", found=f"it was said at {at}")


def _present(field: str, texts: Iterable[str], found: Sequence[str]) -> Iterator[Missed]:
    for text in texts:
        if having := [one for one in found if pattern(text).search(one)]:
            yield Missed(field=field, expected=f"not {text}", found=_shown(having))


def _uncalled(field: str, names: Iterable[str], wishes: Sequence[ToolWish]) -> Iterator[Missed]:
    for name in names:
        if not any(fnmatchcase(one.tool, name) for one in wishes):
            tools = ", ".join(dict.fromkeys(one.tool for one in wishes))
            yield Missed(field=field, expected=name, found=tools or "none")


def _unwanted(field: str, names: Iterable[str], wishes: Sequence[ToolWish]) -> Iterator[Missed]:
    for name in names:
        if having := [one for one in wishes if fnmatchcase(one.tool, name)]:
            given = [f"{one.tool} {msgspec.json.encode(one.given).decode()}" for one in having]
            yield Missed(field=field, expected=f"not {name}", found=_shown(given))


def _beyond(field: str, most: float | None, found: float) -> Iterator[Missed]:
    if most is not None and found > most:
        yield Missed(field=field, expected=f"at most {most:g}", found=f"{found:g}")


def _shown(texts: Iterable[str]) -> str:
    """Return texts in a line.

    >>> _shown(["a  b", "c"]), _shown([])
    ('"a b"; "c"', 'nothing')
    """
    lines = (" ".join(text.split()) for text in texts)
    short = (line if len(line) <= SHOWN else f"{line[: SHOWN - 1]}…" for line in lines)
    return "; ".join(f'"{line}"' for line in short) or "nothing"
