"""The text of a page, made of its HTML by a process of its own (`readable`)."""

from __future__ import annotations

from pathlib import Path

from . import readable
from .conversion import converted


async def text_of_page(
    html: str, url: str, python: str | Path, within_s: float, *, is_xml: bool = False
) -> str | None:
    """Return what a reader would see of a page; None: that can't be told in time.

    Args:
        url: of the page; empty: it has none.
        python: the interpreter that runs it.
    """
    program = ("-S", str(Path(readable.__file__)), *["--xml"] * is_xml)
    data = f"{url}\n{html}".encode("utf-8", "replace")
    text = await converted(python, *program, data=data, within_s=within_s)
    return None if text is None else text.decode("utf-8", "replace")
