"""The modes of a terminal: readline's while somebody types, and those from before at each end.

A thread inside `input` can't put them back, and Python has readline take no signals. So that is
done here: when the chat ends, by itself or by a signal, and when it is stopped (Ctrl-Z). Where it
goes on, it has the modes again that it had.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import termios
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final

CTRL_D: Final = b"\x04"
PASTE_ON: Final = "\x1b[?2004h"
PASTE_OFF: Final = "\x1b[?2004l"
ENDS: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
LOCAL_FLAGS: Final = 3
"""Where they stand in what `termios.tcgetattr` returns."""
CONTROL_KEYS: Final = 6
"""And the keys."""


class Modes:
    """Those of the terminal on stdin, as they were."""

    def __init__(
        self, before: list[Any], went_on: Callable[[], None], *, has_readline: bool
    ) -> None:
        self._fd = sys.stdin.fileno()
        self._before = before
        self._went_on = went_on
        self._has_readline = has_readline

    def begin(self) -> None:
        """Have no Ctrl-D held back, and look after signals. Only readline itself ends at a Ctrl-D
        whatever the terminal is set to: what stands in for it elsewhere (libedit) doesn't."""
        keys = list(self._before[CONTROL_KEYS])
        if self._has_readline and keys[termios.VEOF] == CTRL_D:
            keys[termios.VEOF] = bytes([os.fpathconf(self._fd, "PC_VDISABLE")])
            termios.tcsetattr(self._fd, termios.TCSADRAIN, [*self._before[:CONTROL_KEYS], keys])
        for number in ENDS:
            if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores one
                signal.signal(number, self._end)
        if signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL:
            signal.signal(signal.SIGTSTP, self._stop)

    def restore(self) -> None:
        """Put everything back, as far as there is still a terminal."""
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.write(PASTE_OFF)
            sys.stdout.flush()
        with contextlib.suppress(termios.error, OSError):
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)
        for number in (*ENDS, signal.SIGTSTP):
            if signal.getsignal(number) in (self._end, self._stop):
                signal.signal(number, signal.SIG_DFL)

    def echo(self, is_on: bool) -> None:
        """Have the terminal show what is typed, which readline takes from it, or show nothing:
        what is typed while no line is read is in the next one, and isn't shown before."""
        with contextlib.suppress(termios.error, OSError):
            now = termios.tcgetattr(self._fd)
            flags = now[LOCAL_FLAGS] & ~termios.ECHO
            now[LOCAL_FLAGS] = flags | (self._before[LOCAL_FLAGS] & termios.ECHO if is_on else 0)
            termios.tcsetattr(self._fd, termios.TCSANOW, now)

    def _end(self, number: int, _: FrameType | None) -> None:
        self.restore()
        signal.raise_signal(number)

    def _stop(self, number: int, _: FrameType | None) -> None:
        with contextlib.suppress(termios.error, OSError):
            now = termios.tcgetattr(self._fd)
            self.restore()
            signal.raise_signal(number)  # and here it goes on
            self.begin()
            termios.tcsetattr(self._fd, termios.TCSADRAIN, now)
            self._went_on()


@contextlib.contextmanager
def terminal_restored(went_on: Callable[[], None], *, has_readline: bool) -> Iterator[Modes | None]:
    """Leave the terminal as it was, however this ends. None: it's no terminal.

    Args:
        went_on: is called when it goes on after a Ctrl-Z.
        has_readline: whether it is readline that reads.
    """
    try:
        before = termios.tcgetattr(sys.stdin.fileno())
    except (termios.error, OSError, ValueError):
        yield None
        return
    modes = Modes(before, went_on, has_readline=has_readline)
    try:
        modes.begin()
        yield modes
    finally:
        modes.restore()
