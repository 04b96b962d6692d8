"""The source of the package and of the services, parsed once for all tests that look at it."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

ROOT: Final = Path(__file__).parents[2]
T = TypeVar("T", bound=ast.AST)
_LOOKED_FOR: Final = (
    *(ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.Import, ast.ImportFrom),
    *(ast.ExceptHandler, ast.Call, ast.Await),
)
"""What some test asks for."""


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


def nodes(*kinds: type[T]) -> Iterator[tuple[str, T]]:
    """Yield whatever the modules have of these kinds, with the module's path; one kind after the
    other, each in the order of the source."""
    found = _by_kind()
    for kind in kinds:
        for path, node in found[kind]:
            assert isinstance(node, kind)
            yield path, node


@cache
def _by_kind() -> dict[type[ast.AST], list[tuple[str, ast.AST]]]:
    """Walk through all trees, which takes most of a second, once."""
    found: dict[type[ast.AST], list[tuple[str, ast.AST]]] = {kind: [] for kind in _LOOKED_FOR}
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if type(node) in found:
                found[type(node)].append((path, node))
    return found
