"""Modules whose docstring says "Pure" decide by their arguments alone.

They import no I/O, clock, randomness or logging, and call nothing of the kind that needs no import.
What the docstring of a package says holds for every module in it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from tests.support import sources

IMPURE_MODULES: Final = frozenset(
    {
        "aiosqlite", "anthropic", "asyncio", "fastapi", "http.client", "httpx2", "logging", "nats",
        "openai", "os", "pathlib", "random", "secrets", "shutil", "socket", "sqlite3", "structlog",
        "subprocess", "tempfile", "threading", "time", "urllib.request", "uuid", "vigil.bus",
        "vigil.clock", "vigil.runtime",
    }
)  # fmt: skip
IMPURE_CALLS: Final = frozenset({"open", "input", "print", "datetime.now", "date.today"})


@cache
def modules() -> dict[str, ast.Module]:
    """Return every module of the package and of the services, by its dotted name."""
    return {
        path.removeprefix("shared/").removesuffix(".py").replace("/", "."): tree
        for path, tree in sources.trees().items()
    }


def is_pure(name: str) -> bool:
    """Whether the module, or a package around it, says so."""
    parts = name.split(".")
    packages = [".".join([*parts[:end], "__init__"]) for end in range(1, len(parts))]
    return any(
        re.search(r"\bPure\b", ast.get_docstring(modules()[each]) or "")
        for each in (name, *packages)
        if each in modules()
    )


def imports(name: str) -> Iterator[str]:
    for node in ast.walk(modules()[name]):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = name.split(".")[: -node.level] if node.level else []
            origin = ".".join([*above, *filter(None, [node.module])])
            yield from (f"{origin}.{each.name}" for each in node.names)


def calls(name: str) -> Iterator[str]:
    for node in ast.walk(modules()[name]):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


def is_impure(imported: str) -> bool:
    parts = imported.split(".")
    return any(".".join(parts[:end]) in IMPURE_MODULES for end in range(1, len(parts) + 1))


def offences(name: str) -> list[str]:
    offending = [each for each in imports(name) if is_impure(each)]
    return offending + [f"{each}()" for each in calls(name) if each in IMPURE_CALLS]


def test_the_decisions_say_that_they_are_pure() -> None:
    """A docstring that loses the word would no longer be checked."""
    folders = "services.cortex.core", "services.gateway.why", "vigil.contracts"
    decisions = [name for name in modules() if name.endswith(".decide")]
    assert [name for name in decisions if not is_pure(name)] == []
    for folder in folders:
        assert sum(is_pure(name) for name in modules() if name.startswith(folder)) >= 5, folder


def test_pure_modules_are_pure() -> None:
    pure = [name for name in modules() if is_pure(name)]
    assert {name: found for name in pure if (found := offences(name))} == {}
