"""The line that is typed, as readline shows it: its rows, and where the cursor is.

What is written above it takes it away and puts it back, and readline goes on as if nothing had
been: so both have to agree on each row. What was pasted may be anybody's: a control character is
shown as readline shows it, and never reaches the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ...output import printable

TAB: Final = 8
UNKNOWN: Final = "?"
_FIRST_PRINTED: Final = 0x20
_DELETE: Final = 0x7F


class TypedLine(NamedTuple):
    """A line on a terminal."""

    text: str
    """What draws it, from the left edge; the cursor is behind it then."""
    rows: int
    row: int
    """Where the cursor is, from the first one."""
    column: int
    is_last_blank: bool
    """Whether nothing stands in the last row."""


def placed(line: str, point: int, width: int) -> TypedLine:
    r"""Lay a line with its prompt out. A row that is full is followed by another one.

    Args:
        point: in front of which character the cursor is, 0 up to the length of the line.
        width: columns of the terminal.

    >>> placed("you> ab", 7, 10)
    TypedLine(text='you> ab', rows=1, row=0, column=7, is_last_blank=False)
    >>> placed("you> abcde", 10, 10)[1:4], placed("you> abcdef", 5, 10)[1:4]
    ((2, 1, 0), (2, 0, 5))
    >>> placed("a\x1b[31m\tb", 0, 40).text
    'a^[[31m b'
    """
    pieces: list[str] = []
    row = used = 0
    at = (0, 0)
    for index, character in enumerate(line):
        is_first = True
        for cell, size in _cells(character, used):
            if used + size > width:
                row, used = row + 1, 0
            if is_first and index == point:
                at = (row, used)
            is_first = False
            pieces.append(cell)
            used += size
            if used == width:
                row, used = row + 1, 0
        if character == "\n":
            if index == point:
                at = (row, used)
            pieces.append(" \r\n" if _is_wrapping(pieces, used) else "\n")
            row, used = row + 1, 0
    if point >= len(line):
        at = (row, used)
    if _is_wrapping(pieces, used):
        pieces.append(" \r")
    return TypedLine("".join(pieces), row + 1, *at, is_last_blank=row > 0 and used == 0)


def _is_wrapping(pieces: list[str], used: int) -> bool:
    """Whether the row before is full, and the terminal hasn't gone on to the next one yet."""
    return used == 0 and bool(pieces) and not pieces[-1].endswith("\n")


def _cells(character: str, used: int) -> Iterator[tuple[str, int]]:
    """Yield what stands for a character, and the columns of each."""
    from rich.cells import cell_len

    code = ord(character)
    if character == "\n":
        return
    if character == "\t":
        yield from ((" ", 1) for _ in range(TAB - used % TAB))
    elif code < _FIRST_PRINTED or code == _DELETE:
        yield from (("^", 1), (chr(code ^ 0x40), 1))
    elif 0xD800 <= code <= 0xDFFF or (0x80 <= code < 0xA0):
        yield UNKNOWN, 1
    elif printable(character):
        yield character, cell_len(character)
