"""The house as a reader walks it: who imports whom, and what an addition has to touch.

``python -m bench.house`` prints it as JSON. Nothing is run or imported of what is measured; what is
counted are the files of `shared/vigil` and `services`, tests and bench left out.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent
HOMES: Final = {"vigil": ROOT / "shared" / "vigil", "services": ROOT / "services"}
HOUSES: Final = (
    "vigil",
    "services.gateway",
    "services.cortex",
    "services.cortex.core",
    "services.memory",
    "services.executor",
    "services.scheduler",
    "services.delivery",
)
"""Packages whose direct parts, folders and modules, are their rooms."""


class Arrow(NamedTuple):
    """One import: by module names."""

    importer: str
    imported: str


def modules() -> dict[str, Path]:
    """Return the files by the names they are imported by; a package by its own."""
    found = {}
    for name, home in HOMES.items():
        for path in sorted(home.rglob("*.py")):
            parts = path.relative_to(home).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            found[".".join((name, *parts))] = path
    return found


def parsed(path: Path) -> ast.Module:
    """Return a file as a tree."""
    return ast.parse(path.read_bytes())


def imports(path: Path) -> list[ast.AST]:
    """Return what a file imports, wherever in it."""
    nodes = ast.walk(parsed(path))
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


def arrows(
    known: Mapping[str, Path], imports_of: Callable[[Path], Iterable[ast.AST]] = imports
) -> set[Arrow]:
    """Return who imports whom, wherever in a file it says so; of packages what they hold.

    Args:
        imports_of: gives a file's imports, for who has them.
    """
    return {
        Arrow(name, target)
        for name, path in known.items()
        for target in _imported(name, path, known, imports_of(path))
        if target != name
    }


def _imported(
    name: str, path: Path, known: Mapping[str, Path], nodes: Iterable[ast.AST]
) -> Iterator[str]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join((*above, base)) if base else ".".join(above)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                if inner in known:
                    yield inner
                elif base in known:
                    yield base


def room_of(module: str, house: str) -> str | None:
    """Return the direct part of a package that a module is in; None: it's elsewhere, or its face.

    >>> room_of("vigil.bus.kv", "vigil"), room_of("services.gateway", "services.gateway")
    ('bus', None)
    """
    if not module.startswith(f"{house}."):
        return None
    return module[len(house) + 1 :].partition(".")[0]


def floors(found: Iterable[Arrow], house: str) -> dict[str, set[str]]:
    """Return which rooms of a package each of them imports from."""
    rooms: dict[str, set[str]] = defaultdict(set)
    for importer, imported in found:
        first, second = room_of(importer, house), room_of(imported, house)
        if first and second and first != second:
            rooms[first].add(second)
            rooms.setdefault(second, set())
    return rooms


def circles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return the sets of nodes that all lead to each other (Tarjan), the largest first.

    >>> circles({"a": ["b"], "b": ["a", "c"], "c": []})
    [['a', 'b']]
    """
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            circle, stack[at:] = stack[at:], []
            if len(circle) > 1:
                found.append(sorted(circle))

    sys.setrecursionlimit(max(sys.getrecursionlimit(), 10 * len(graph) + 1000))
    for node in graph:
        if node not in index:
            visit(node)
    return sorted(found, key=len, reverse=True)


def code_lines(text: str) -> int:
    """Return how many lines say something to Python: no blanks, comments or docstrings.

    >>> code_lines("'Doc.'; x = 1  # one\\n\\n# two\\ny = 2")
    1
    """
    skipped: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text and isinstance(node.value.value, str):
            skipped |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    said: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _SILENT and token.string.strip():
            said |= set(range(token.start[0], token.end[0] + 1))
    return len(said - skipped)


_SILENT: Final = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip
KINDS: Final = "vigil.contracts.board"
"""What stands on the board: a record each."""
RECORDS: Final = r"Board\w+|Approval|Circuit|Grant|GrantUse|Job|SourceFacts|TimetableRow"
WORDS: Final = {"told": r"told|tell", "look": r"look", "desk": r"desk"}
"""Words that had three meanings and more: how many definitions have one in their name."""


def figures() -> dict[str, Any]:
    """Return all figures; the fewer the better, each of them."""
    known = modules()
    texts = {name: path.read_text("utf-8") for name, path in known.items()}
    found = arrows(known)
    lines = Counter[str]()
    for name, text in texts.items():
        lines[".".join(name.split(".")[:2])] += code_lines(text)
    counts = sorted(fan_out(known, found).values())
    defined = [
        node
        for text in texts.values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    classes = Counter(node.name for node in defined if isinstance(node, ast.ClassDef))
    return {
        "code_lines": sum(lines.values()),
        "code_lines_by_room": dict(sorted(lines.items())),
        "files": len(known),
        "rooms_in_circles": {
            house: [sum(map(len, circles(graph))), len(graph)]
            for house in HOUSES
            for graph in [floors(found, house)]
        },
        "imports_of_a_file": {
            "median": median(counts),
            "p90": quantiles(counts, n=10)[-1],
            "max": counts[-1],
        },
        "files_that_import_a_kind": kinds(known, texts),
        **_costs_of_fields(known, texts),
        "classes_twice": sum(count > 1 for count in classes.values()),
        "widest_constructor": max(
            width(node) for node in defined if isinstance(node, ast.ClassDef)
        ),
        "fmt_skip": sum(len(re.findall(r"#\s*fmt:\s*(?:skip|off)\b", t)) for t in texts.values()),
        "definitions_by_word": {
            word: sum(bool(re.search(pattern, node.name, re.IGNORECASE)) for node in defined)
            for word, pattern in WORDS.items()
        },
    }


def fan_out(known: Iterable[str], found: Iterable[Arrow]) -> dict[str, int]:
    """Return how many files of ours each file imports."""
    counts = Counter(importer for importer, _ in found)
    return {name: counts[name] for name in known}


def width(node: ast.ClassDef) -> int:
    """Return how many parameters the constructor of a class has that it writes out."""
    return max(
        (
            len(one.args.args) + len(one.args.kwonlyargs) - 1
            for one in node.body
            if isinstance(one, ast.FunctionDef) and one.name == "__init__"
        ),
        default=0,
    )


def _costs_of_fields(known: Mapping[str, Path], texts: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for noun, record in (("goal", "BoardGoal"), ("grant", "Grant")):
        costs = fields_of(record, known, texts)
        found[f"files_that_name_a_field_of_a_{noun}"] = {n: len(one) for n, one in costs.items()}
        found[f"lines_that_name_a_field_of_a_{noun}"] = {
            name: sum(one.values()) for name, one in costs.items()
        }
    return found


def fields_of(
    record: str,
    known: Mapping[str, Path],
    texts: Mapping[str, str],
    parse: Callable[[Path], ast.Module] = parsed,
) -> dict[str, dict[str, int]]:
    """Return for the fields that a record alone has, how many lines of which files name each: what
    such a field costs. By HTTP `_s` is `_secs`.

    Args:
        parse: gives a file's tree, for who has them.
    """
    fields: dict[str, set[str]] = {}
    for name, path in known.items():
        if name.startswith("vigil.contracts"):
            for node in parse(path).body:
                if isinstance(node, ast.ClassDef):
                    fields[node.name] = _fields_of(node)
    own = fields.pop(record)
    found = {}
    for field in sorted(own - set().union(*fields.values())):
        pattern = re.compile(rf"\b{field}(?:ecs)?\b")
        lines = {
            name: sum(pattern.search(line) is not None for line in text.splitlines())
            for name, text in texts.items()
            if field in text  # most don't name it: looking at each of their lines takes seconds
        }
        found[field] = {name: count for name, count in lines.items() if count}
    return found


def _fields_of(node: ast.ClassDef) -> set[str]:
    return {
        one.target.id
        for one in node.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }


def kinds(known: Mapping[str, Path], texts: Mapping[str, str]) -> dict[str, int]:
    """Return in how many files each record is named that stands on the board."""
    records = [
        node.name
        for name, path in known.items()
        if name.startswith(KINDS)
        for node in parsed(path).body
        if isinstance(node, ast.ClassDef) and re.fullmatch(RECORDS, node.name)
    ]
    return {
        record: sum(bool(re.search(rf"\b{record}\b", text)) for text in texts.values())
        for record in sorted(records)
    }


if __name__ == "__main__":
    print(json.dumps(figures(), indent=1))
