"""The examples in docstrings of the package and of the services hold."""

from __future__ import annotations

import doctest
import importlib
import linecache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def modules() -> list[str]:
    """Return the modules with an example, by name."""
    found = [
        path.relative_to(root)
        for root, folder in ((ROOT / "shared", "vigil"), (ROOT, "services"))
        for path in sorted((root / folder).rglob("*.py"))
        if ">>> " in path.read_text("utf-8")
    ]
    return [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in found]


@pytest.mark.parametrize("name", modules())
def test_examples_hold(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # For each example, doctest looks whether any file changed of which a line was read: nine
    # hundred thousand looks.
    monkeypatch.setattr(linecache, "checkcache", lambda *_: None)
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried, "an example that is in no docstring"
    assert not failed
