"""What ends a test that never ends, and tells what it waited for."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import tempfile
import threading
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Any, Final

TEST_MAX_S: Final = 240.0
"""In the short form, with five at once on two cores, no test takes a quarter of it."""


class Watch:
    """Calls `tell` from a thread, once, when nothing was heard of for `max_s` seconds."""

    def __init__(self, tell: Callable[[str], None], max_s: float) -> None:
        self._tell, self._max_s = tell, max_s
        self._heard = threading.Event()
        threading.Thread(target=self._watch, name="watch", daemon=True).start()

    def heard(self) -> None:
        """Say that the process goes on."""
        self._heard.set()

    def _watch(self) -> None:
        while self._heard.wait(self._max_s):
            self._heard.clear()
        self._tell(f"it didn't end within {self._max_s:g} s, and waited here:\n{stacks()}")


def stacks() -> str:
    """Return where each thread is, and each of asyncio's tasks that haven't ended."""
    with tempfile.TemporaryFile("w+") as told:
        faulthandler.dump_traceback(told, all_threads=True)
        told.seek(0)
        threads = [_own(thread) for thread in told.read().split("\n\n")]
    # By the garbage collector: asyncio lists tasks of a loop only, and differently by version.
    tasks = [one for one in gc.get_objects() if isinstance(one, asyncio.Task) and not one.done()]
    return "\n\n".join([*threads, *("\n".join(_lines(task)) for task in tasks)])


def _own(thread: str) -> str:
    """Return what a thread does without how pytest came to it."""
    return "\n".join(takewhile(lambda line: "/_pytest/" not in line, thread.splitlines()))


def _lines(task: asyncio.Task[Any]) -> Iterator[str]:
    yield f"Task {task.get_name()}:"
    awaited: Any = task.get_coro()
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        if frame is None:
            yield f"  {awaited!r}"[:300]
        else:
            code = frame.f_code
            yield f'  File "{code.co_filename}", line {frame.f_lineno} in {code.co_qualname}'
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
