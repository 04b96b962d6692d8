r"""A long text in parts that a network takes, cut where it hurts least. Pure.

First between paragraphs and at the borders of blocks of code, then between lines, then between
words. A block that is cut is closed at the end of a part and opened anew at the start of the next,
so that each part is whole in itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from ...contracts import Said
from ..mail.composition import OUTSIDE
from ..notices.pages import rest_of

FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n]*)$")
_MARKED: Final = re.compile(r"\[[^\[\]]*\]\([^()\s]*\)|\*\*[^*]+\*\*|`[^`]+`")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
Measure = Callable[[str], int]
PARTS_MAX: Final = 5
"""Of a message: nobody wants more of them at once in a room. The rest is in the console."""


class SaidParts(msgspec.Struct, frozen=True, kw_only=True):
    """A message in parts."""

    texts: tuple[str, ...]
    asks: str = ""
    """The request that it shows; empty: none, or not whole, and nobody decides on what they
    aren't shown."""


class _Block(msgspec.Struct, frozen=True):
    """What is cut at last: a paragraph, or the lines of a block of code."""

    lines: tuple[str, ...]
    opening: str = ""
    """The line that opens a block of code; empty: it's none."""
    closing: str = ""

    @property
    def text(self) -> str:
        whole = (self.opening, *self.lines, self.closing) if self.opening else self.lines
        return "\n".join(whole)


def parts_of(said: Said, console_url: str, room: int, measure: Measure = len) -> SaidParts:
    """Return a message in parts; at its end stands that others had a hand in it, and where all of
    it is, if it's cut.

    Args:
        console_url: where people reach the console; empty: nobody said.
        room: for a part, at least 1,800.
        measure: of a text; of two together it's the sum.
    """
    text = clean(said.text).strip() or "…"
    remark = f"\n\n({OUTSIDE})" if said.is_tainted else ""
    texts = split(text + remark, room, measure)
    if len(texts) <= PARTS_MAX:
        return SaidParts(texts=tuple(texts), asks=said.asks)
    rest = f"\n\n{rest_of(said, console_url)}{remark}"
    *whole, last = texts[:PARTS_MAX]
    begin = split(last, room - measure(rest), measure)[0]
    return SaidParts(texts=(*whole, begin + rest))


def units(text: str) -> int:
    """Return how long a text is in UTF-16, as most networks count.

    >>> units("a🙂")
    3
    """
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def clean(text: str) -> str:
    r"""Return a text without what a server can't store.

    >>> clean("a\r\nb\x00c\ud800")
    'a\nbc'
    """
    return _CONTROL.sub("", text.replace("\r\n", "\n"))


def split(text: str, room: int, measure: Measure = len) -> list[str]:
    r"""Return a text in parts, each of at most so much by `measure`; none is empty.

    Args:
        room: at least 200.
        measure: of a text; that of a longer one isn't less.

    >>> split("a\n\nb", 3000)
    ['a\n\nb']
    >>> [len(one) for one in split("\n\n".join(["x" * 150] * 3), 320)]
    [302, 150]
    """
    parts: list[str] = []
    open_part = ""
    for block in _blocks(text):
        for piece in _pieces(block, room, measure):
            joined = f"{open_part}\n\n{piece}" if open_part else piece
            if measure(joined) <= room:
                open_part = joined
                continue
            if open_part:
                parts.append(open_part)
            open_part = piece
    if open_part:
        parts.append(open_part)
    return parts


def _blocks(text: str) -> Iterator[_Block]:
    held: list[str] = []
    opening, mark = "", ""
    for line in text.replace("\r\n", "\n").split("\n"):
        fence = FENCE.match(line)
        if mark:
            is_end = fence is not None and not fence[2].strip() and fence[1].startswith(mark)
            if not is_end:
                held.append(line)
                continue
            yield _Block(tuple(held), opening, line)
            held, mark = [], ""
        elif fence is not None:
            yield from _paragraph(held)
            held, opening, mark = [], line, fence[1]
        elif not line.strip():
            yield from _paragraph(held)
            held = []
        else:
            held.append(line)
    if mark:
        yield _Block(tuple(held), opening, mark)
    else:
        yield from _paragraph(held)


def _paragraph(lines: list[str]) -> Iterator[_Block]:
    if lines:
        yield _Block(tuple(lines))


def _pieces(block: _Block, room: int, measure: Measure) -> Iterator[str]:
    """Cut a block between lines, and a line that is too long between words."""
    if measure(block.text) <= room:
        yield block.text
        return
    # A block whose own marks leave no room is text like any other.
    if block.opening and measure(f"{block.opening}\n\n{block.closing}") > room // 2:
        block = _Block((block.opening, *block.lines, block.closing))

    def whole(lines: list[str]) -> str:
        return _Block(tuple(lines), block.opening, block.closing).text

    held: list[str] = []
    for line in block.lines:
        for piece in _cut(line, room, lambda one: measure(whole([one]))):
            if held and measure(whole([*held, piece])) > room:
                yield whole(held)
                held = []
            held.append(piece)
    if held:
        yield whole(held)


def _cut(line: str, room: int, measure: Measure) -> Iterator[str]:
    while (fits := _fitting(line, room, measure)) < len(line):
        space = line.rfind(" ", max(fits // 2, 1), fits + 1)
        at = _outside_marks(line, space if space > 0 else fits)
        yield line[:at]
        line = line[at:].removeprefix(" ")
    yield line


def _fitting(line: str, room: int, measure: Measure) -> int:
    """Return how many characters of a line fit, at least one: a measure never falls with more text.
    What is measured is never much more than what fits, however long the line.

    >>> _fitting("abcdef", 4, len), _fitting("abc", 4, len)
    (4, 3)
    """
    low, high = 1, 2
    while high < len(line) and measure(line[:high]) <= room:
        low, high = high, 2 * high
    high = min(high, len(line))
    while low < high:
        middle = (low + high + 1) // 2
        if measure(line[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
    return high


def _outside_marks(line: str, at: int) -> int:
    """Return where to cut instead of in the middle of a link or what else has marks on both sides,
    which would be two halves of nothing.

    >>> _outside_marks("Look at [the page](https://example.org).", 14)
    7
    """
    for found in _MARKED.finditer(line):
        if found.start() >= at:
            break
        if at < found.end() and found.start() > at // 2:
            return found.start() - (line[found.start() - 1] == " ")
    return at
