"""Lines from whoever talks: a person at a terminal, or a pipe.

asyncio can read neither `readline` nor a plain file, so a thread does. It is a daemon that nobody
waits for: a command that ends must not hang on an input that says nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

from ..output import printable
from .screen import PROMPT
from .terminal.turns import ScreenTurns

try:
    import readline
except ImportError:  # pragma: no cover - a Python without it still has input()
    readline = None  # type: ignore[assignment]


MORE: Final = "\\"
"""At the end of a line: another one follows, of the same text."""


class InputLines:
    """Lines from a thread. It reads the next one when the last one was dealt with."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._dealt_with = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to read, or go on after the line that was the last one for whoever had it."""
        if self._thread is not None:
            self._dealt_with.set()
            return
        self._thread = threading.Thread(target=self._run, name="lines", daemon=True)
        self._thread.start()

    def _read(self) -> Iterator[str]:
        """Yield lines, in the thread."""
        raise NotImplementedError  # pragma: no cover - both subclasses define it

    def _run(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is gone: nobody listens any more
            for line in self._read():
                self._dealt_with.clear()
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
                self._dealt_with.wait()
            self._loop.call_soon_threadsafe(self._lines.put_nowait, None)

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield lines until the input ends."""
        while (line := await self._lines.get()) is not None:
            yield line
            self._dealt_with.set()


class Keyboard(InputLines):
    """A person at a terminal: readline edits the line and keeps a history.

    What is pasted comes as one text, also if it has several lines (bracketed paste, which Python
    turns off): it can be looked at, and Enter says it.
    """

    _has_prompt = False

    def __init__(self) -> None:
        super().__init__()
        self.turns = ScreenTurns()
        self.entered: Callable[[str], None] = lambda line: None
        """Is called in the thread with each line as it was typed, before anything else is drawn."""
        self.ended: Callable[[], None] = lambda: None
        """Is called there once there are no more."""
        self.echo: Callable[[bool], None] = lambda is_on: None
        """Has the terminal show what is typed, or not."""
        self._point: Any = None
        if readline is not None:
            readline.parse_and_bind("set enable-bracketed-paste on")
            self._point = _cursor_of_readline()
            with contextlib.suppress(ImportError, ValueError):  # another Python than CPython
                self.turns.offer_hook()

    def remember(self, lines: Iterable[str]) -> None:
        """Offer what was said before, the oldest first, by the arrow keys."""
        for line in lines if readline is not None else ():
            readline.add_history(" ".join(printable(line).split()))

    def typed(self) -> str | None:
        """Return what is typed of a line so far; None while there is no prompt."""
        if not self._has_prompt:
            return None
        return readline.get_line_buffer() if readline is not None else ""

    def point(self) -> int | None:
        """Return in front of which character of it the cursor is; None: nobody knows."""
        if self._point is None:
            return None
        return len(os.fsdecode(os.fsencode(self.typed() or "")[: self._point.value]))

    def _read(self) -> Iterator[str]:
        while (line := self._ask()) is not None:
            while line.endswith(MORE):
                if (following := self._ask()) is None:
                    return
                line = f"{line.removesuffix(MORE)}\n{following}"
            yield line

    def _ask(self) -> str | None:
        """Return a line; None: there are no more."""
        self.turns.begin_line()
        self._has_prompt = True
        line = None
        self.echo(True)
        with contextlib.suppress(EOFError, OSError, ValueError):
            line = input(PROMPT)
        self.echo(False)
        self._has_prompt = False
        with contextlib.suppress(OSError, ValueError):  # the terminal may be gone
            self.turns.end_line(self.ended if line is None else partial(self.entered, line))
        return line


def is_readline() -> bool:
    """Whether it is readline itself that reads, and nothing that stands in for it."""
    return readline is not None and "libedit" not in (readline.__doc__ or "")


def _cursor_of_readline() -> Any:
    """Return where readline keeps the cursor, in bytes from the line's beginning; Python doesn't
    say. None: it isn't to be found."""
    import ctypes

    try:
        return ctypes.c_int.in_dll(ctypes.CDLL(getattr(readline, "__file__", None)), "rl_point")
    except (OSError, ValueError):
        return None


class Pipe(InputLines):
    """A pipe or a file on stdin.

    It reads the descriptor itself: at exit, Python gives up if a thread is inside `sys.stdin`.
    """

    def _read(self) -> Iterator[str]:
        rest = b""
        while chunk := os.read(sys.stdin.fileno(), 65536):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (line.decode("utf-8", "replace") for line in lines)
        if rest:
            yield rest.decode("utf-8", "replace")
