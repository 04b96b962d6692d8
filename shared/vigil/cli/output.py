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

FOLDED_MIN: Final = 20
"""Columns that text keeps at least, where ids leave little room."""
GAP: Final = 2
"""Between two columns."""
KEPT_MIN: Final = 2
"""Columns that are shown however narrow a terminal is: what a thing is called, and what it is."""
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


def table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], ranks: Sequence[int] = ()
) -> None:
    """Print rows: a table that fits a terminal, aligned columns (never cut) anywhere else.

    Args:
        ranks: of each column: the higher, the sooner it's left out where all don't fit.
    """
    cells = [[" ".join(printable(cell).split()) for cell in row] for row in rows]
    if is_fancy(sys.stdout):
        _draw(columns, cells, ranks or [0] * len(columns))
        return
    lines = [list(columns), *cells]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    for line in lines:
        data("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip())


def _draw(columns: Sequence[str], cells: list[list[str]], ranks: Sequence[int]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    least = [_least_of([column, *(line[i] for line in cells)]) for i, column in enumerate(columns)]
    shown = fitting([one for one, _ in least], ranks, console.width)
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for i in shown:
        # An id folded over two lines can't be copied: what is one word stays whole, and a terminal
        # that is too narrow for two columns wraps the line itself.
        drawn.add_column(columns[i], overflow="fold", no_wrap=least[i][1], min_width=least[i][0])
    for line in cells:
        drawn.add_row(*(Text(line[i]) for i in shown))
    needed = sum(least[i][0] + GAP for i in shown) - GAP
    (console if needed <= console.width else Console(width=needed)).print(drawn)
    if left_out := [name for i, name in enumerate(columns) if i not in shown]:
        message(dim(f"Left out for the width: {', '.join(left_out)}.", sys.stderr))


def _least_of(texts: Sequence[str]) -> tuple[int, bool]:
    """Return how much room a column takes at least, and whether what stands in it is one word."""
    from rich.cells import cell_len

    longest = max(map(cell_len, texts))
    is_word = longest <= WORD_MAX and not any(" " in text for text in texts[1:])
    return (longest if is_word else min(longest, FOLDED_MIN)), is_word


def fitting(widths: Sequence[int], ranks: Sequence[int], room: int) -> list[int]:
    """Return which columns are shown: the first two in any case; of the others the last ones of the
    highest rank are left out, until all fit.

    >>> fitting([8, 20, 8, 19], [0, 0, 1, 0], 80), fitting([8, 20, 8, 19], [0, 0, 1, 0], 55)
    ([0, 1, 2, 3], [0, 1, 3])
    >>> fitting([90, 20, 8], [0, 0, 0], 80)
    [0, 1]
    """
    shown = list(range(len(widths)))
    while len(shown) > KEPT_MIN and sum(widths[i] + GAP for i in shown) - GAP > room:
        shown.remove(max(shown[KEPT_MIN:], key=lambda i: (ranks[i], i)))
    return shown
