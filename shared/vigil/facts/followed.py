"""Rows that follow a fact: of which source, as a person says it (FLOW F-10). Pure.

build.status        of the row `build`, or of the hook, whichever there is
hook:build.status   of the hook, where a row is called the same
build               any of its facts; of a row its id will do, too
cycles.ci           of the agent's cycles, by the facts of its looks
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from ..contracts import TimetableRow
from ..contracts.board import AfterSchedule, FactFill
from ..errors import InvalidInput
from ..words.nearest import listed, meant
from .shape import NAME
from .shown import HOOK, NamedSource, called, shapes_of

FIELD: Final = "on_fact"
OF_HOOK: Final = "hook:"


class _Followable(NamedTuple):
    source: NamedSource
    hook: str = ""


def followed_by(
    text: str, rows: Iterable[TimetableRow], hooks: Iterable[NamedSource]
) -> dict[str, str]:
    """Return what of a schedule says that a row follows a fact, as `edit` takes it.

    Args:
        rows: of the owner and agent.
        hooks: that tell them facts.

    Raises:
        InvalidInput: there is no such source, or it tells no such fact.
    """
    sources = [_Followable(NamedSource(_name(one), one.id, shapes_of(one))) for one in rows]
    sources = [one for one in sources if one.source.shapes]
    told = [_Followable(one, one.called.removeprefix(HOOK)) for one in hooks]
    name, is_parted, fact = text.strip().rpartition(".")
    if not is_parted or not NAME.fullmatch(fact):
        name, fact = text.strip(), ""
    found = _named(name, sources, told)
    if not found and fact:  # a row may be called so
        found, fact = _named(text.strip(), sources, told), ""
    if len(found) != 1:
        known = [*(one.source.called for one in sources), *(OF_HOOK + one.hook for one in told)]
        what = "several tell facts that are" if found else "nothing tells facts that is"
        hint = listed(known) if found else meant(name[:100], known)
        raise InvalidInput(FIELD, f"{what} called {name[:100]!r}{hint}")
    ((source, hook),) = found
    if fact and fact not in source.shapes:
        names = ", ".join(source.shapes)
        raise InvalidInput(FIELD, f"{name[:100]!r} tells no fact {fact!r}; it tells {names}")
    return {"after": source.id, "after_on": "change", "after_fact": fact, "after_hook": hook}


def _name(row: TimetableRow) -> str:
    return called(row) if row.is_of_system else row.name


def _named(name: str, rows: list[_Followable], hooks: list[_Followable]) -> list[_Followable]:
    if name.startswith(OF_HOOK):
        return [one for one in hooks if one.hook == name.removeprefix(OF_HOOK)]
    theirs = [one for one in rows if name in (one.source.called, one.source.id)]
    return theirs + [one for one in hooks if one.hook == name]


def check_hook(schedule: AfterSchedule, hooks: Iterable[NamedSource]) -> None:
    """Check that a hook that is followed is there. Raises: InvalidInput."""
    there = list(hooks)
    source = next((one for one in there if one.id == schedule.row), None)
    if source is None:
        hint = meant(schedule.hook, [one.called.removeprefix(HOOK) for one in there])
        what = f"there is no hook {schedule.hook!r} that tells them facts{hint}"
        raise InvalidInput(FIELD, what)
    if schedule.fact and schedule.fact not in source.shapes:
        raise InvalidInput(FIELD, f"hook {schedule.hook!r} tells no fact {schedule.fact!r}")


def is_followed(schedule: AfterSchedule, fill: FactFill | None) -> bool:
    """Whether what a source told makes a row due that follows it.

    >>> told = FactFill(cause="e", news=("ci",))
    >>> is_followed(AfterSchedule(row="1f", on="change", fact="ci"), told)
    True
    >>> is_followed(AfterSchedule(row="1f", on="change", fact="open"), told)
    False
    """
    if fill is None or schedule.on != "change":
        return False
    return schedule.fact in fill.news if schedule.fact else bool(fill.news)
