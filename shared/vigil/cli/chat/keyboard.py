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
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, Final

from ..output import printable
from .screen import PROMPT

try:
    import readline
except ImportError:  # pragma: no cover - a Python without it still has input()
    readline = None  # type: ignore[assignment]


MORE: Final = "\\"
"""At the end of a line: another one follows, of the same text."""
CTRL_D: Final = b"\x04"
PASTE_OFF: Final = "\x1b[?2004l"


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
        if readline is not None:
            readline.parse_and_bind("set enable-bracketed-paste on")

    def remember(self, lines: Iterable[str]) -> None:
        """Offer what was said before, the oldest first, by the arrow keys."""
        for line in lines if readline is not None else ():
            readline.add_history(" ".join(printable(line).split()))

    def typed(self) -> str | None:
        """Return what is typed of a line so far; None while there is no prompt."""
        if not self._has_prompt:
            return None
        return readline.get_line_buffer() if readline is not None else ""

    def _read(self) -> Iterator[str]:
        while True:
            self._has_prompt = True
            try:
                line = input(PROMPT)
                while line.endswith(MORE):
                    line = f"{line.removesuffix(MORE)}\n{input(PROMPT)}"
            except (EOFError, OSError, ValueError):
                return
            finally:
                self._has_prompt = False
            yield line


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


@contextlib.contextmanager
def terminal_restored() -> Iterator[None]:
    """Leave the terminal as it was: a thread inside `input` can't put it back.

    That goes for its settings and for the mode of pastes. Meanwhile Ctrl-D is a key like others
    also while no line is read: the system would take it for the end of nothing, and readline,
    reading again, would never see it.
    """
    import termios

    try:
        before = termios.tcgetattr(sys.stdin.fileno())
    except (termios.error, OSError, ValueError):
        yield
        return
    try:
        _keep_ctrl_d(before)
        yield
    finally:
        sys.stdout.write(PASTE_OFF)
        sys.stdout.flush()
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)


def _keep_ctrl_d(settings: list[Any]) -> None:
    """Have the terminal hold back no Ctrl-D. Only for readline itself, which ends at it all the
    same: what stands in for it elsewhere (libedit) ends by the terminal's setting."""
    import termios

    if readline is None or "libedit" in (readline.__doc__ or ""):
        return
    *flags, keys = settings
    if keys[termios.VEOF] != CTRL_D:
        return
    keys = list(keys)
    keys[termios.VEOF] = bytes([os.fpathconf(sys.stdin.fileno(), "PC_VDISABLE")])
    termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, [*flags, keys])
