"""Lines from a person, read in a thread so that the conversation goes on meanwhile.

`readline` edits the line and keeps a history; asyncio can't read it, so a daemon thread does. It
waits after each line until the line was dealt with, so that two never draw at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import AsyncIterator, Iterator

from .screen import PROMPT

try:
    import readline
except ImportError:  # pragma: no cover - a Python without it still has input()
    readline = None  # type: ignore[assignment]


class Keyboard:
    """The person at the terminal."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._dealt_with = threading.Event()
        self._is_reading = False

    def typed(self) -> str | None:
        """Return what is typed of a line so far; None while there is no prompt."""
        if not self._is_reading:
            return None
        return readline.get_line_buffer() if readline is not None else ""

    def start(self) -> None:
        threading.Thread(target=self._read, name="keyboard", daemon=True).start()

    def _read(self) -> None:
        while True:
            self._is_reading = True
            try:
                line = input(PROMPT)
            except (EOFError, OSError, ValueError):
                line = None
            self._is_reading = False
            self._dealt_with.clear()
            with contextlib.suppress(RuntimeError):  # the loop is gone: the chat is over
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
            if line is None:
                return
            self._dealt_with.wait()

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield lines until the person ends the input; the prompt returns after each."""
        while (line := await self._lines.get()) is not None:
            yield line
            self._dealt_with.set()


@contextlib.contextmanager
def terminal_restored() -> Iterator[None]:
    """Leave the terminal as it was: a thread inside `input` can't put it back."""
    import termios

    try:
        before = termios.tcgetattr(sys.stdin.fileno())
    except (termios.error, OSError, ValueError):
        yield
        return
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)
