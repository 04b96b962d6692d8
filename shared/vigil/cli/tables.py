"""What commands print: a list by its columns, a thing by its fields, an act in a sentence.

A noun's module holds its columns and the actions that differ. Each returns a `Result`, of which
``--json`` prints the facts. Instants are shown one way everywhere, to the second: `wall`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from vigil.texts.columns import Column, history, short

from . import output, wall

__all__ = ["Column", "Result", "done", "fields", "history", "listing", "made", "short", "table"]


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


def table(columns: Sequence[Column], items: Iterable[Mapping[str, Any]]) -> None:
    """Print a line for each item; what an item has none of is a dash."""
    zone = f" ({wall.zone_name()})"
    titles = [one.title + zone * one.is_instant for one in columns]
    rows = [[_cell(_value(one, item)) for one in columns] for item in items]
    output.table(titles, rows, [one.rank for one in columns])


def _value(column: Column, item: Mapping[str, Any]) -> object:
    found = column.value(item)
    return wall.instant(found) if column.is_instant and found else found


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
        if value := _value(one, item):
            zone = f" {wall.zone_name()}" if one.is_instant else ""
            output.data(f"{one.title:<{width}}  {output.printable(value)}{zone}")


def done(text: str, facts: object) -> Result:
    """Return what was done: in words for a person, its facts for a program."""
    return Result(facts, partial(output.message, text))


def made(text: str, facts: object, *ids: str) -> Result:
    """Return what was made: in words for a person; a script that reads what is printed gets the
    ids, one a line.
    """

    def show() -> None:
        if not output.is_screen(sys.stdout):
            for id_ in ids:
                output.data(id_)
        output.message(text)

    return Result(facts, show)
