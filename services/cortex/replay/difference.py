"""Where a turn that was decided again differs from the one on the log. Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from vigil.contracts import Turn

GIVEN: Final = ("recalled", "recall_degraded", "nothing_inherited")
"""Notes of what memory or another session gave: read, not decided."""
_LENGTH_MAX: Final = 300


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """The first field that differs."""

    field: str
    """As in ``state.counters.consecutive`` or ``effects[0].payload.text``."""
    expected: str
    """What is on the log, as JSON, cut."""
    got: str


def first(recorded: Turn, decided: Turn) -> Difference | None:
    """Return the first field of the record that differs; None: they are the same.

    What a turn was decided from is not compared, nor are the notes of `GIVEN`, and what people are
    told of its letters.
    """
    return _first("", _compared(recorded), _compared(decided))


def _compared(turn: Turn) -> Any:
    notes = tuple(note for note in turn.notes if note.code not in GIVEN)
    return msgspec.to_builtins(msgspec.structs.replace(turn, notes=notes, letters=(), made=None))


def _first(path: str, expected: Any, got: Any) -> Difference | None:
    """
    >>> _first("", {"a": [1, 2], "b": 1}, {"a": [1, 3], "b": 1})
    Difference(field='a[1]', expected='2', got='3')
    """
    if expected == got:
        return None
    if isinstance(expected, dict) and isinstance(got, dict):
        for name in (*expected, *(more for more in got if more not in expected)):
            where = f"{path}.{name}" if path else str(name)
            if (found := _first(where, expected.get(name), got.get(name))) is not None:
                return found
    if isinstance(expected, list | tuple) and isinstance(got, list | tuple):
        for index in range(max(len(expected), len(got))):
            pair = (_at(expected, index), _at(got, index))
            if (found := _first(f"{path}[{index}]", *pair)) is not None:
                return found
    return Difference(field=path, expected=_shown(expected), got=_shown(got))


def _at(values: Any, index: int) -> Any:
    return values[index] if index < len(values) else None


def _shown(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _LENGTH_MAX else f"{text[:_LENGTH_MAX]}…"
