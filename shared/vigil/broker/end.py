"""A server that is asked to end, and is given the time that it takes.

As it ends it writes an index of each stream, which takes longer the more is stored: of 10 million
records over 5 s on a busy machine. One that is killed meanwhile leaves an index that isn't whole,
and the next start reads all that is stored instead: 12 GiB, for two minutes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from ..observe.cpu import CPU_MIN_S, cpu_of
from ..processes.process import Process

STILL_S: Final = 5.0
"""So long a server that is to end may take no CPU."""
MOST_S: Final = 20.0
"""So long it may take in all: `vigil up` as a whole ends within 30 s."""
POLL_S: Final = 0.05


async def end(
    process: Process,
    *,
    still_s: float = STILL_S,
    most_s: float = MOST_S,
    cpu: Callable[[int], float] = cpu_of,
) -> None:
    """Have a process end by itself (SIGTERM), and kill it if it gets nowhere.

    Args:
        still_s: it's killed once it takes no CPU for so long.
        most_s: and whatever it does after so long.
        cpu: tells what a process took of the CPU so far, in seconds, by its id.
    """
    loop = asyncio.get_running_loop()
    process.terminate()
    begun_at_s = moved_at_s = loop.time()
    seen_s = cpu(process.pid)
    while loop.time() < min(begun_at_s + most_s, moved_at_s + still_s):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(POLL_S):
                await process.wait()
        if process.returncode is not None:
            return
        if (cpu_s := cpu(process.pid)) >= seen_s + CPU_MIN_S:
            moved_at_s, seen_s = loop.time(), cpu_s
    process.kill()
    await process.wait()
