"""Who draws: while a line is typed, the thread that reads it, else whoever has something to show.

readline changes the line, and then the screen. What draws between the two finds them different,
and what it writes stays wrong: a letter twice, or a row that is gone. So drawing waits until
readline waits for a key, and is done there, ten times a second; and the thread that got a line
moves it where it belongs before anybody else draws. Python calls its hook for that
(`PyOS_InputHook`) only with readline.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any, Final

Draw = Callable[[], None]
HOOK: Final = "PyOS_InputHook"


class ScreenTurns:
    """Has drawing take turns with a line that is typed. One in a process."""

    def __init__(self) -> None:
        self.may_draw: Callable[[], bool] = lambda: True
        """Whether something can be drawn above what is typed just now."""
        self._lock = threading.RLock()
        self._waiting: list[Draw] = []
        self._is_typing = False
        self._has_ended = False
        self._hook: Any = None

    def offer_hook(self) -> None:
        """Have the thread that reads draw. Without this anybody draws at once."""
        import ctypes

        self._hook = ctypes.CFUNCTYPE(ctypes.c_int)(self._rest)
        address = ctypes.cast(self._hook, ctypes.c_void_p).value
        ctypes.c_void_p.in_dll(ctypes.pythonapi, HOOK).value = address

    def draw(self, draw: Draw) -> None:
        """Draw, at once or when the line that is typed rests."""
        with self._lock:
            self._waiting.append(draw)
            if not self._is_typing:
                self._draw_all()

    def begin_line(self) -> None:
        """A line is typed from now on."""
        with self._lock:
            self._draw_all()
            self._is_typing = self._hook is not None

    def end_line(self, draw: Draw) -> None:
        """It was entered: draw that, and then what waits."""
        with self._lock:
            self._is_typing = False
            self._waiting.insert(0, draw)
            self._draw_all()

    def end(self) -> None:
        """Nobody reads any more, whatever the thread still does: show what waits, and no more."""
        with self._lock:
            if self._hook is not None:
                import ctypes

                ctypes.c_void_p.in_dll(ctypes.pythonapi, HOOK).value = None
            if self.may_draw():
                self._draw_all()
            self._has_ended = True

    def _rest(self) -> int:
        with contextlib.suppress(OSError, ValueError), self._lock:  # the terminal may be gone
            if self._waiting and self._is_typing and self.may_draw():
                self._draw_all()
        return 0

    def _draw_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not self._has_ended:
                one()
