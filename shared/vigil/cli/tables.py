"""What commands print: a list by its columns, a thing by its fields, an act in a sentence.

A noun's module holds its columns and the actions that differ. Each returns a `Result`, of which
``--json`` prints the facts. Instants are shown one way everywhere, to the second: `wall`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from . import output, wall

TEXT_LENGTH_MAX: Final = 100
"""Characters of a text in a column; the rest is shown by `show`."""


class Column(NamedTuple):
    """One column of a list, or one field of a thing that is shown.

    Args:
        title: what stands above it.
        of: the name of a field, or a function from the thing to what is shown.
        is_instant: it is a point in time: ISO 8601, or an aware datetime.
        rank: the higher, the sooner it's left out where a terminal is too narrow for all.
    """

    title: str
    of: str | Callable[[Mapping[str, Any]], object]
    is_instant: bool = False
    rank: int = 0

    def value(self, item: Mapping[str, Any]) -> object:
        """Return what is shown of `item`; None or an empty text if it has none.

        >>> Column("ID", "id").value({"id": "a1"}), Column("TOOL", "tool").value({})
        ('a1', None)
        """
        found = item.get(self.of) if isinstance(self.of, str) else self.of(item)
        return wall.instant(found) if self.is_instant and found else found


class Result(NamedTuple):
    """What a command found or did.

    Args:
        facts: for a program.
        show: tells a person.
        end: raised once it is printed: an error, or `typer.Exit` with an exit code.
    """

    facts: object
    show: Callable[[], None]
    end: Exception | None = None

    def print(self, *, is_json: bool) -> None:
        """Print the facts as JSON, or what a person is told. Raises: `end`."""
        if is_json:
            output.json(self.facts)
        else:
            self.show()
        if self.end is not None:
            raise self.end


def short(text: object, length_max: int = TEXT_LENGTH_MAX) -> str:
    """Return the beginning of a text, with a mark if that isn't all.

    >>> short("tea at five", 3)
    'tea…'
    """
    whole = str(text)
    return whole if len(whole) <= length_max else f"{whole[:length_max]}…"


def history(*state: Column) -> tuple[Column, ...]:
    """Return the columns of how a thing came to be as it is; `state` is what is shown of it.

    >>> [one.title for one in history(Column("STATUS", "status"))]
    ['REVISION', 'AT', 'STATUS', 'BY', 'WHY']
    """
    begin = Column("REVISION", "revision"), Column("AT", "at", is_instant=True)
    return (*begin, *state, Column("BY", "by"), Column("WHY", "why"))


def table(columns: Sequence[Column], items: Iterable[Mapping[str, Any]]) -> None:
    """Print a line for each item; what an item has none of is a dash."""
    zone = f" ({wall.zone_name()})"
    titles = [one.title + zone * one.is_instant for one in columns]
    rows = [[_cell(one.value(item)) for one in columns] for item in items]
    output.table(titles, rows, [one.rank for one in columns])


def _cell(value: object) -> object:
    return "-" if value is None or value == "" else value


def listing(
    name: str, found: Sequence[Mapping[str, Any]], columns: Sequence[Column], *, empty: str
) -> Result:
    """Return what was found: a table, JSON under `name`, or for a person that it is nothing."""
    show = partial(table, columns, found) if found else partial(output.message, empty)
    return Result({name: found}, show)


def fields(columns: Sequence[Column], item: Mapping[str, Any]) -> None:
    """Print one thing, a field a line; what it has none of is left out."""
    width = max(len(one.title) for one in columns)
    for one in columns:
        if value := one.value(item):
            zone = f" {wall.zone_name()}" if one.is_instant else ""
            output.data(f"{one.title:<{width}}  {output.printable(value)}{zone}")


def done(text: str, facts: object) -> Result:
    """Return what was done: in words for a person, its facts for a program."""
    return Result(facts, partial(output.message, text))
