"""A converter of what a stranger wrote, run as a process of its own that may take so long."""

from __future__ import annotations

import asyncio
from pathlib import Path
from subprocess import DEVNULL, PIPE

from ..processes.process import start


async def converted(
    python: str | Path, *program: str, data: bytes, within_s: float
) -> bytes | None:
    """Return what a program of ours makes of what it reads; None: it failed, or took too long.

    Args:
        python: the interpreter that runs it.
        program: its path, with options of the interpreter before it and its own behind it.
    """
    process = await start(
        str(python),
        "-I",
        *program,
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        env={},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(within_s):
            found, _ = await process.communicate(data)
        if process.returncode == 0:
            return found
    except (TimeoutError, OSError):
        pass
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return None
