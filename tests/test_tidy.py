"""Tidiness of the source text, as numbers that only go down.

`KEPT` says how many offenders of each kind there are today. A new one fails here; so does a number
that is too high. To lower one, mend an offender and write the new number in its row.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from bench import house
from tests.support.sources import ROOT, nodes, texts, trees

KEPT: Final = {
    "folders with more than 15 modules side by side": 0,
    "class names defined more than once": 0,
    "files named by a gerund": 0,
    "comments `noqa`": 49,
    "comments `fmt: skip`": 19,
    "handlers of any `Exception`": 29,
    "files over 400 lines": 1,
    "functions over 60 lines": 1,
    "notes of work left for later": 0,
    "docstrings that begin with a fragment": 509,
    "waits that can lose a cancellation": 0,
    "test files of one name that pytest can't tell apart": 0,
    "rooms that lead back to themselves": 0,
    "modules called pure that wait for something": 0,
    "files that import more than 24 of ours": 16,
    "constructors of more than 8 parameters": 0,
    "places that name a field of a goal": 41,
    "places that name a field of a grant": 33,
}

NOUNS: Final = {"routing"}
"""Words in -ing that name a thing."""


def lines_with(pattern: str) -> list[str]:
    return [
        f"{path}:{number}"
        for path, text in texts().items()
        for number, line in enumerate(text.splitlines(), 1)
        if re.search(pattern, line)
    ]


def flat_folders() -> list[str]:
    modules = Counter(Path(path).parent for path in texts() if not Path(path).name.startswith("__"))
    return [f"{folder} ({count})" for folder, count in modules.items() if count > 15]


def repeated_classes() -> list[str]:
    defined = defaultdict(list)
    for path, node in nodes(ast.ClassDef):
        defined[node.name].append(path)
    return [f"{name} ({', '.join(at)})" for name, at in sorted(defined.items()) if len(at) > 1]


def gerunds() -> list[str]:
    stems = {path: Path(path).stem for path in texts()}
    return [path for path, stem in stems.items() if stem.endswith("ing") and stem not in NOUNS]


def broad_handlers() -> list[str]:
    """Return the handlers of everything that don't raise it again."""
    return [
        f"{path}:{node.lineno}"
        for path, node in nodes(ast.ExceptHandler)
        if (node.type is None or re.search(r"\b(Base)?Exception\b", ast.unparse(node.type)))
        and not (isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None)
    ]


def long_files() -> list[str]:
    lines = {path: len(text.splitlines()) for path, text in texts().items()}
    return [f"{path} ({count})" for path, count in lines.items() if count > 400]


def long_functions() -> list[str]:
    return [
        f"{path}: {node.name} ({(node.end_lineno or 0) - node.lineno + 1})"
        for path, node in nodes(ast.FunctionDef, ast.AsyncFunctionDef)
        if (node.end_lineno or 0) - node.lineno >= 60
    ]


def twin_tests() -> list[str]:
    """Return the names that modules outside of packages share: one of them isn't collected."""
    alone = [
        path.relative_to(ROOT)
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if not (path.parent / "__init__.py").exists()
    ]
    names = Counter(path.name for path in alone)
    return [str(path) for path in alone if names[path.name] > 1]


@cache
def arrows() -> set[house.Arrow]:
    """Return who imports whom."""
    found = defaultdict(list)
    for path, node in nodes(ast.Import, ast.ImportFrom):
        found[ROOT / path].append(node)
    return house.arrows(house.modules(), lambda path: found[path])


def widely_importing() -> list[str]:
    """Return the files whose reader has to know more than 24 others."""
    counts = house.fan_out(house.modules(), arrows())
    return [f"{name} ({count})" for name, count in counts.items() if count > 24]


def wide_constructors() -> list[str]:
    """Return the constructors of more than 8 parameters."""
    found = [(path, node, house.width(node)) for path, node in nodes(ast.ClassDef)]
    return [f"{path}: {node.name} ({width})" for path, node, width in found if width > 8]


def tree_of(path: Path) -> ast.Module:
    return trees()[path.relative_to(ROOT).as_posix()]


def places_of(record: str) -> list[str]:
    """Return which files name which of the fields that a record alone has: what a field costs."""
    known = house.modules()
    named = {path: name for name, path in known.items()}
    said = {named[ROOT / path]: text for path, text in texts().items()}
    found = house.fields_of(record, known, said, tree_of)
    return [f"{field}: {name}" for field, files in found.items() for name in files]


def circling_rooms() -> list[str]:
    """Return the direct parts of packages that import each other in a circle."""
    found = arrows()
    return [
        f"{whole}: {room} (with {', '.join(other for other in circle if other != room)})"
        for whole in house.HOUSES
        for circle in house.circles(house.floors(found, whole))
        for room in circle
    ]


def impatient_modules() -> list[str]:
    """Return modules that say "Pure" and await: what they wait for isn't."""
    waiting = {path for path, _ in nodes(ast.Await)}
    return [path for path in sorted(waiting) if re.search(r"\bPure\b", _said(path))]


def _said(path: str) -> str:
    return ast.get_docstring(trees()[path]) or ""


FIND: Final[dict[str, Callable[[], list[str]]]] = {
    "folders with more than 15 modules side by side": flat_folders,
    "class names defined more than once": repeated_classes,
    "files named by a gerund": gerunds,
    "comments `noqa`": lambda: lines_with(r"#\s*noqa\b"),
    "comments `fmt: skip`": lambda: lines_with(r"#\s*fmt:\s*(skip|off)\b"),
    "handlers of any `Exception`": broad_handlers,
    "files over 400 lines": long_files,
    "functions over 60 lines": long_functions,
    "waits that can lose a cancellation": lambda: lines_with(r"\basyncio\.wait_for\("),
    "test files of one name that pytest can't tell apart": twin_tests,
    "rooms that lead back to themselves": circling_rooms,
    "files that import more than 24 of ours": widely_importing,
    "constructors of more than 8 parameters": wide_constructors,
    "places that name a field of a goal": lambda: places_of("BoardGoal"),
    "places that name a field of a grant": lambda: places_of("Grant"),
    "modules called pure that wait for something": impatient_modules,
    "notes of work left for later": lambda: lines_with(r"\b(TODO|FIXME|XXX)\b"),
    "docstrings that begin with a fragment": lambda: lines_with(r'^\s*"""(Of|As|That|Likewise)\b'),
}


@pytest.mark.parametrize("kind", FIND)
def test_there_are_no_more_than_were_kept(kind: str) -> None:
    found, kept = FIND[kind](), KEPT[kind]
    listed = "\n  ".join(found)
    assert len(found) <= kept, f"{len(found)} {kind}, kept are {kept}; mend one:\n  {listed}"
    assert len(found) >= kept, (
        f"Only {len(found)} {kind} are left: write {len(found)} instead of {kept} in KEPT"
        f" (tests/test_tidy.py), so that it stays so:\n  {listed}"
    )
