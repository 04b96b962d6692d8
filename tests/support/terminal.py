"""A terminal of a few rows, as far as our own output needs one: what would a person see?"""

from __future__ import annotations

import re

_BEGUN = re.compile(r"\x1b(\[[0-9;?]*)?\Z")
_SEQUENCE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")


class Terminal:
    """Understands printing, line ends, and the escape codes that move up, right and erase."""

    def __init__(self, columns: int = 40, rows: int = 200) -> None:
        self.columns = columns
        self.rows = rows
        self._begun = ""
        """Of an escape code whose end hasn't come yet."""
        self.is_bracketing = False
        """Whether a paste is to come between marks: the program asked for that."""
        self._cells: list[list[str]] = [[]]
        self._row = 0
        self._column = 0

    @property
    def lines(self) -> list[str]:
        """What is on the screen, without blank rows at the end."""
        found = ["".join(row).rstrip() for row in self._cells]
        while found and not found[-1]:
            found.pop()
        return found

    @property
    def cursor(self) -> tuple[int, int]:
        return self._row, self._column

    def write(self, text: str) -> int:
        whole, text = len(text), self._begun + text
        begun = _BEGUN.search(text)
        self._begun = begun[0] if begun else ""
        text = text.removesuffix(self._begun)
        position = 0
        while position < len(text):
            match = _SEQUENCE.match(text, position)
            if match:
                self._control(match[1], match[2])
                position = match.end()
            else:
                self._print(text[position])
                position += 1
        return whole

    def flush(self) -> None:
        """A terminal shows everything at once."""

    def isatty(self) -> bool:
        return True

    def _control(self, argument: str, letter: str) -> None:
        count = int(argument) if argument.isdigit() else 1
        if argument == "?2004":
            self.is_bracketing = letter == "h"
        elif letter == "A":
            self._row = max(0, self._row - count)
        elif letter == "C":
            self._column += count
        elif letter == "D":
            self._column = max(0, self._column - count)
        elif letter == "K":
            del self._cells[self._row][self._column :]
        elif letter == "J":
            del self._cells[self._row][self._column :]
            del self._cells[self._row + 1 :]

    def _print(self, character: str) -> None:
        if character == "\n":
            self._row += 1
            self._column = 0
        elif character == "\r":
            self._column = 0
        elif character == "\b":
            self._column = max(0, self._column - 1)
        elif character >= " ":
            if self._column >= self.columns:
                self._row += 1
                self._column = 0
            self._put(character)
        while len(self._cells) <= self._row:
            self._cells.append([])

    def _put(self, character: str) -> None:
        while len(self._cells) <= self._row:
            self._cells.append([])
        row = self._cells[self._row]
        row.extend(" " for _ in range(self._column - len(row)))
        row[self._column : self._column + 1] = [character]
        self._column += 1
