"""What the commands print: JSON for programs, tables for people, and nothing dangerous.

Text that came from a model or from another person is stripped of control characters before it
reaches a terminal: an escape sequence could hide or forge what is shown.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Any, Final

import msgspec

FOLDED_MIN: Final = 24
"""Columns that text keeps at least, where ids leave little room."""
WORD_MAX: Final = 200
"""The longest session key has 194 characters."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: object) -> str:
    r"""Remove control characters and direction overrides; keep line ends and tabs.

    >>> printable("a\x1b[2Jb")
    'a[2Jb'
    """
    return _CONTROL.sub("", str(text))


def data(text: str) -> None:
    """Print to stdout, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def json(value: Any) -> None:
    """Print one JSON value in one line."""
    data(msgspec.json.encode(value).decode())


def message(text: str) -> None:
    """Tell a person something: to stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def is_screen(stream: Any) -> bool:
    """Whether `stream` is a terminal on which something can be drawn again."""
    return bool(stream.isatty()) and os.environ.get("TERM") != "dumb"


def is_fancy(stream: Any) -> bool:
    """Whether `stream` is a terminal that wants colours, too (https://no-color.org)."""
    return is_screen(stream) and not os.environ.get("NO_COLOR")


def dim(text: str, stream: Any) -> str:
    """Make `text` less prominent where that is possible."""
    return f"\x1b[2m{text}\x1b[0m" if is_fancy(stream) else text


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows: a table on a terminal, aligned columns (never cut) anywhere else."""
    cells = [[" ".join(printable(cell).split()) for cell in row] for row in rows]
    if is_fancy(sys.stdout):
        from rich.cells import cell_len
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        drawn = Table(box=None, pad_edge=False, header_style="bold")
        needed = 0
        for number, column in enumerate(columns):
            texts = [line[number] for line in cells]
            # An id folded over two lines can't be copied: what is one word stays whole, and a
            # terminal that is too narrow wraps the line itself.
            longest = max(map(cell_len, (column, *texts)))
            is_word = longest <= WORD_MAX and not any(" " in text for text in texts)
            least = longest if is_word else min(longest, FOLDED_MIN)
            drawn.add_column(column, overflow="fold", no_wrap=is_word, min_width=least)
            needed += least + 2
        for line in cells:
            drawn.add_row(*(Text(cell) for cell in line))
        console = Console()
        if needed > console.width:
            console = Console(width=needed)
        console.print(drawn)
        return
    lines = [list(columns), *cells]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    for line in lines:
        data("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip())
