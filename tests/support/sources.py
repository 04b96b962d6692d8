"""The source of the package and of the services, parsed once for all tests that look at it."""

from __future__ import annotations

import ast
import gc
import re
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
def tree(path: str) -> ast.Module:
    """Return a module as a tree."""
    return ast.parse(texts()[path])


def trees() -> dict[str, ast.Module]:
    """Return every module as a tree, by its path from the root: seconds, if nobody asked before."""
    looks = gc.isenabled()
    # Hundreds of thousands of objects that stay: looking through them took 40% of the time.
    gc.disable()
    try:
        return {path: tree(path) for path in texts()}
    finally:
        gc.freeze()
        if looks:
            gc.enable()


def nodes(*kinds: type[T], where: str = "") -> Iterator[tuple[str, T]]:
    """Yield whatever the modules have of these kinds, with the module's path; one kind after the
    other, each in the order of the source. Modules in whose text the pattern `where` isn't are left
    out, and not even parsed."""
    paths = [path for path, text in texts().items() if re.search(where, text)]
    for kind in kinds:
        for path in paths:
            for node in _by_kind(path)[kind]:
                assert isinstance(node, kind)
                yield path, node


@cache
def _by_kind(path: str) -> dict[type[ast.AST], list[ast.AST]]:
    """Walk through a tree, once."""
    found: dict[type[ast.AST], list[ast.AST]] = {kind: [] for kind in _LOOKED_FOR}
    for node in ast.walk(tree(path)):
        if type(node) in found:
            found[type(node)].append(node)
    return found
