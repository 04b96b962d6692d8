"""The tour names files, classes and functions that exist, and is short enough to be read."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

from tests.support.sources import texts, tree

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = ROOT / "docs" / "tour.md", ROOT / "CONTRIBUTING.md"
TOUR: Final = PAGES[0].read_text("utf-8")
CLASS: Final = re.compile(r"^class (\w+)", re.MULTILINE)
PATH: Final = re.compile(r"`((?:shared|services|tests|deploy|docs|prompts)/[\w./-]+)`")


def defined(file: ast.Module) -> set[str]:
    """Return the classes and functions of a file, and methods as ``Intake.accept``."""
    names: set[str] = set()
    for node in file.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {
                f"{node.name}.{each.name}"
                for each in node.body
                if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
            }
    return names


def test_it_is_short() -> None:
    assert len(TOUR.split()) < 1200


def test_every_path_exists() -> None:
    paths = [path for page in PAGES for path in PATH.findall(page.read_text("utf-8"))]
    assert len(paths) > 50
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_name_is_defined_in_the_file_beside_it() -> None:
    """Written as "`name` in `file`", or "`name` (`file`)"."""
    text = " ".join(TOUR.split())
    pairs = re.findall(r"`((?:[A-Z]\w*\.)?[a-zA-Z_]\w*)` (?:in |\()`([\w./]+\.py)`", text)
    assert len(pairs) > 25
    assert [(n, file) for n, file in pairs if n not in defined(tree(file))] == []


def test_every_other_class_is_defined_somewhere() -> None:
    everywhere = {name for one in texts().values() for name in CLASS.findall(one)}
    named = set(re.findall(r"`([A-Z][a-z]+[A-Za-z]*)`", TOUR))
    assert named - everywhere == set()
