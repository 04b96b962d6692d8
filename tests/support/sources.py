"""The source of the package and of the services, parsed once for all tests that look at it."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


@cache
def texts() -> dict[str, str]:
    """Return the text of every module, by its path from the root."""
    files = [file for top in ("shared", "services") for file in (ROOT / top).rglob("*.py")]
    return {file.relative_to(ROOT).as_posix(): file.read_text("utf-8") for file in sorted(files)}


@cache
def trees() -> dict[str, ast.Module]:
    """Return every module as a tree, by its path from the root."""
    looks = gc.isenabled()
    # Hundreds of thousands of objects that stay: looking through them took 40% of the time.
    gc.disable()
    try:
        return {path: ast.parse(text) for path, text in texts().items()}
    finally:
        gc.freeze()
        if looks:
            gc.enable()


def nodes() -> Iterator[tuple[str, ast.AST]]:
    """Yield whatever a module has, with the module's path."""
    for path, tree in trees().items():
        for node in ast.walk(tree):
            yield path, node
