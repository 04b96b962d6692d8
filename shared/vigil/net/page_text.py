"""The text of a page, made of its HTML by a process of its own (`readable`)."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

from . import readable


async def text_of_page(
    html: str, url: str, python: str | Path, within_s: float, *, is_xml: bool = False
) -> str | None:
    """Return what a reader would see of a page; None: that can't be told in time.

    Args:
        url: of the page; empty: it has none.
        python: the interpreter that runs it.
    """
    process = await asyncio.create_subprocess_exec(
        str(python), "-I", "-S", str(Path(readable.__file__)), *["--xml"] * is_xml,
        stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={}, start_new_session=True,
    )  # fmt: skip
    try:
        async with asyncio.timeout(within_s):
            text, _ = await process.communicate(f"{url}\n{html}".encode("utf-8", "replace"))
        if process.returncode == 0:
            return text.decode("utf-8", "replace")
    except (TimeoutError, OSError):
        pass
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return None
