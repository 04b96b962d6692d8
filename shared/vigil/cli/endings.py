"""Work that leaves nothing behind, however it's ended: a copy of a home holds all its secrets.

By SIGTERM (`timeout`, a runner of jobs) and SIGHUP (a closed terminal) Python ends where it
is. Here both end what runs as Ctrl-C does; then the process ends by the signal, as its parent
expects it to.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

ENDS: Final = (signal.SIGTERM, signal.SIGHUP)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run it as `asyncio.run` does, with what it has to take away taken away in any case.

    A signal that the process ignores, as SIGHUP under nohup, stays ignored.
    """
    ended_by: list[signal.Signals] = []
    try:
        return asyncio.run(_ending(work, ended_by))
    except asyncio.CancelledError:
        if ended_by:
            signal.raise_signal(ended_by[0])
        raise


async def _ending(work: Coroutine[Any, Any, T], ended_by: list[signal.Signals]) -> T:
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)

    def end(number: signal.Signals) -> None:
        ended_by.append(number)
        task.cancel()

    watched = [number for number in ENDS if signal.getsignal(number) is signal.SIG_DFL]
    for number in watched:
        loop.add_signal_handler(number, end, number)
    try:
        return await task
    finally:
        for number in watched:
            loop.remove_signal_handler(number)
