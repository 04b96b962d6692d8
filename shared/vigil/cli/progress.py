"""A progress bar for long work: on a terminal it is drawn over and over, elsewhere it is silent."""

from __future__ import annotations

import sys
import time
from typing import Final

from . import output

WIDTH: Final = 30
REDRAW_S: Final = 0.1


class Bar:
    """Bytes done of so many, with the name of what is at work. Use it in a `with`."""

    def __init__(self, total: int) -> None:
        self._total = max(total, 1)
        self._done: dict[str, int] = {}
        self._drawn_s = float("-inf")
        self._is_shown = output.is_fancy(sys.stderr)

    def report(self, name: str, done: int) -> None:
        """Note that so many bytes of the part `name` are done."""
        self._done[name] = done
        now_s = time.monotonic()
        if self._is_shown and now_s - self._drawn_s >= REDRAW_S:
            self._drawn_s = now_s
            self._draw(name)

    def _draw(self, name: str) -> None:
        share = min(sum(self._done.values()) / self._total, 1.0)
        filled = int(share * WIDTH)
        bar = "█" * filled + "░" * (WIDTH - filled)
        sys.stderr.write(f"\r\x1b[K{bar} {share:4.0%}  {output.printable(name)}")
        sys.stderr.flush()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
