"""What a conversation looks like: on a terminal, in a pipe, as JSON lines.

On a terminal an answer is shown while it is made, above the line that the person is typing,
and the committed message replaces it; nothing is printed twice and the input line survives
whatever arrives. That needs to know how many rows were used, so rows are wrapped here. Only a
few escape codes are used, which every terminal knows.

It does no reading and knows no socket.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol, TextIO

from .. import output
from .terminal.line import TypedLine, placed
from .terminal.modes import PASTE_ON
from .terminal.turns import ScreenTurns

PROMPT: Final = "you> "


class Screen(Protocol):
    """Where a conversation appears. Frames are those of the socket (SPEC P-5)."""

    def token(self, frame: dict[str, Any]) -> None: ...

    def progress(self, frame: dict[str, Any]) -> None: ...

    def message(self, frame: dict[str, Any]) -> None: ...

    def notice(self, text: str) -> None: ...


class JsonScreen:
    """One JSON object a line, messages only."""

    def token(self, frame: dict[str, Any]) -> None:
        """Ignore it: the message that is committed has the whole text."""

    def progress(self, frame: dict[str, Any]) -> None:
        """Ignore it: it passes."""

    def message(self, frame: dict[str, Any]) -> None:
        output.json(frame)

    def notice(self, text: str) -> None:
        output.message(text)


class PlainScreen:
    """Whole messages, for a pipe or a file."""

    def __init__(self, agent: str) -> None:
        self._agent = agent

    def token(self, frame: dict[str, Any]) -> None:
        """Ignore it: the message that is committed has the whole text."""

    def progress(self, frame: dict[str, Any]) -> None:
        """Ignore it: it passes."""

    def message(self, frame: dict[str, Any]) -> None:
        output.data(label(self._agent, frame.get("tag")) + output.printable(frame["text"]))

    def notice(self, text: str) -> None:
        output.message(text)


def label(agent: str, tag: str | None) -> str:
    """Return what stands in front of an agent's message.

    >>> label("vigil", "Agent follow-up")
    'vigil (Agent follow-up)> '
    """
    return f"{agent} ({tag})> " if tag else f"{agent}> "


def wrapped(text: str, width: int) -> list[str]:
    r"""Split into the rows that a terminal of `width` columns shows.

    >>> wrapped("abcde\nf", 3)
    ['abc', 'de', 'f']
    """
    from rich.cells import cell_len

    rows: list[str] = []
    for line in text.expandtabs(4).split("\n"):
        row, used = "", 0
        for character in line:
            size = cell_len(character)
            if used + size > width:
                rows.append(row)
                row, used = "", 0
            row += character
            used += size
        rows.append(row)
    return rows


class TerminalScreen:
    """A terminal. `typed` returns what the person has typed of a line so far; None: no prompt.
    `point` returns where in it the cursor is; None: behind it."""

    def __init__(
        self,
        agent: str,
        typed: Callable[[], str | None],
        point: Callable[[], int | None] = lambda: None,
        *,
        stream: TextIO | None = None,
        size: Callable[[], tuple[int, int]] | None = None,
    ) -> None:
        self._agent = agent
        self._typed = typed
        self._point = point
        self._out = stream or sys.stdout
        self._size = size or partial(_terminal_size, self._out)
        self._sized = self._size()
        self._making: tuple[Any, Any] | None = None
        """Turn and attempt of the answer in the making."""
        self._text = ""
        self._tail = ""
        self._row_widths: list[int] = []
        """Columns that are used of each of its rows."""
        self._made_at = 0
        """The width that it was wrapped to."""
        self._drift = 0
        """Rows that readline is above where it would be, since the window changed."""
        self._passing = 0
        """Rows below it all that tell how far a call is."""

    # ------------------------------------------------------------ what appears

    def token(self, frame: dict[str, Any]) -> None:
        """Show a piece of an answer in the making; a new attempt discards the old one."""
        making = (frame["turn"], frame["attempt"])
        above = self._lift()
        text = output.printable(frame["text"])
        if self._making == making and self._made_at != self._width():
            text, above = self._text + text, above + self._erase()
        elif self._making not in (None, making):
            above += self._erase()
        if self._making is None:
            self._making = making
            above += self._grow(label(self._agent, None) + text, is_first=True)
        else:
            above += self._grow(text)
        self._text += text
        self._write(above + self._prompt())

    def message(self, frame: dict[str, Any]) -> None:
        """Show what was said for good; the same text in the making becomes it."""
        text = output.printable(frame["text"])
        tag = frame.get("tag")
        drawn = self._drawn(label(self._agent, tag), text)
        is_made = self._making is not None and self._text.strip() == text.strip()
        if drawn is None and tag is None and is_made:
            if self._passing:
                self._write(self._lift() + self._prompt())
            self._forget()
            return
        above = self._lift() + self._erase()
        block = self._block(label(self._agent, tag) + text) if drawn is None else f"{drawn}\n"
        self._write(above + block + self._prompt())

    def progress(self, frame: dict[str, Any]) -> None:
        """Show how far a call is, in place of what was shown of that before."""
        above = self._lift()
        if frame.get("is_over"):
            self._write(above + self._prompt())
            return
        line = output.printable(f"{frame['tool']}: {frame['text']}")
        row = wrapped(line, self._width())[0]
        self._passing = 1
        self._write(above + output.dim(f"{row}\n", self._out) + self._prompt())

    def notice(self, text: str) -> None:
        """Tell something that isn't part of the conversation."""
        rows = self._block(output.printable(text))
        above = self._lift()
        if self._making is None:
            self._write(above + output.dim(rows, self._out) + self._prompt())
            return
        text, making = self._text, self._making
        self._write(above + self._erase() + output.dim(rows, self._out))
        self._resume(text, making)

    def line_entered(self, line: str) -> None:
        """The person ended a line: move it above an answer in the making."""
        if self._making is None and not self._passing:
            return
        text, making = self._text, self._making
        typed = self._placed(line)
        up = typed.rows - typed.is_last_blank + self._passing
        self._passing = 0
        if up < self._size()[1]:
            entered = f"{typed.text.rstrip()}\n"
            self._write(f"\x1b[{up}A\r\x1b[J" + self._erase() + entered)
        self._forget()
        if making is not None:
            self._resume(text, making)

    def input_ended(self) -> None:
        """The person says nothing more: readline leaves the cursor behind the prompt."""
        self._write("\n")
        self.line_entered("")

    def may_draw(self) -> bool:
        """Whether all of the input line is in reach, and readline knows how wide it is."""
        size, before = self._size(), self._sized
        typed = self._typed()
        if size != before:
            self._sized = size
            if typed is not None:
                # readline goes up as many rows as it had; the terminal wrapped them anew.
                self._drift += self._placed(typed, before[0]).row - self._placed(typed).row
            return False
        if typed is None:
            return True
        return len(typed) < size[0] * size[1] and self._placed(typed).rows + self._passing < size[1]

    def go_on(self) -> None:
        """The terminal was somebody else's for a while: begin in a new row."""
        self._passing = 0
        text, making = self._text, self._making
        self._forget()
        if self._typed() is not None:
            self._write(PASTE_ON)
        if making is not None:
            self._resume(text, making)
        else:
            self._write(self._prompt())

    def give_up(self) -> None:
        """What is in the making comes to nothing more: it stays as it is."""
        self._forget()

    # ------------------------------------------------------------ how

    def _drawn(self, begin: str, text: str) -> str | None:
        """Return a message that has a structure, drawn; None: it has none."""
        from .prose import drawn

        rows = drawn(text, self._width(), has_colours=output.is_fancy(self._out))
        return None if rows is None else f"{begin.rstrip()}\n{rows}"

    def _resume(self, text: str, making: tuple[Any, Any]) -> None:
        """Draw an answer in the making again, further down."""
        self._making, self._text = making, text
        again = self._grow(label(self._agent, None) + text, is_first=True)
        self._write(again + self._prompt())

    def _grow(self, text: str, *, is_first: bool = False) -> str:
        from rich.cells import cell_len

        self._made_at = self._width()
        rows = wrapped(self._tail + text, self._made_at)
        self._row_widths[-1:] = [cell_len(row) for row in rows]
        self._tail = rows[-1]
        return ("" if is_first else "\x1b[A\x1b[K") + "\n".join(rows) + "\n"

    def _erase(self) -> str:
        """Take an answer in the making away, as far as it is still on the screen."""
        if self._making is None:
            return ""
        columns, rows = self._size()
        # A window that was made narrower shows a row as several.
        made = sum(max(1, -(-width // columns)) for width in self._row_widths)
        up = min(max(made - self._drift, 1), rows - 1)
        self._forget()
        return f"\x1b[{up}A\x1b[J"

    def _forget(self) -> None:
        self._making = None
        self._text = self._tail = ""
        self._row_widths = []
        self._drift = 0

    def _block(self, text: str) -> str:
        return "\n".join(wrapped(text, self._width())) + "\n"

    def _lift(self) -> str:
        """Take the input line away, and what passes above it, to write there."""
        typed = self._typed()
        passing, self._passing = self._passing, 0
        if typed is None:
            return f"\x1b[{passing}A\r\x1b[J" if passing else ""
        up = self._placed(typed).row + passing
        if self._making is None:
            up += max(0, -self._drift)
            self._drift = 0
        return (f"\x1b[{up}A" if up else "") + "\r\x1b[J"

    def _prompt(self) -> str:
        """Draw the input line, with the cursor where it was in it."""
        typed = self._typed()
        if typed is None:
            return ""
        line = self._placed(typed)
        if self._point() in (None, len(typed)):
            return line.text
        up, right = line.rows - 1 - line.row, line.column
        back = (f"\x1b[{up}A" if up else "") + "\r"
        return line.text + back + (f"\x1b[{right}C" if right else "")

    def _placed(self, typed: str, width: int = 0) -> TypedLine:
        point = self._point()
        at = len(typed) if point is None else point
        return placed(PROMPT + typed, len(PROMPT) + at, width or self._size()[0])

    def _width(self) -> int:
        # One column less: terminals differ in where the cursor is after the last one.
        return max(self._size()[0] - 1, 10)

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def _terminal_size(stream: TextIO) -> tuple[int, int]:
    """Return columns and rows as they are, whatever a shell exported when they were others."""
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        size = os.terminal_size((0, 0))
    if not (size.columns and size.lines):
        size = shutil.get_terminal_size()
    return size.columns, size.lines


class SharedScreen:
    """A terminal's screen that is drawn in turns with a line that is typed."""

    def __init__(self, screen: TerminalScreen, turns: ScreenTurns) -> None:
        self._screen = screen
        self._turns = turns
        turns.may_draw = screen.may_draw

    def token(self, frame: dict[str, Any]) -> None:
        self._turns.draw(partial(self._screen.token, frame))

    def progress(self, frame: dict[str, Any]) -> None:
        self._turns.draw(partial(self._screen.progress, frame))

    def message(self, frame: dict[str, Any]) -> None:
        self._turns.draw(partial(self._screen.message, frame))

    def notice(self, text: str) -> None:
        self._turns.draw(partial(self._screen.notice, text))

    def give_up(self) -> None:
        self._turns.draw(self._screen.give_up)

    def go_on(self) -> None:
        """After a Ctrl-Z."""
        self._turns.draw(self._screen.go_on)
