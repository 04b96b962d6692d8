"""`vigil` on a machine without WordLlama: ``python -m tests.memory.wordless ARGS``."""

from __future__ import annotations

import importlib.util
from typing import Any, Final

from services.memory.embedding import codebook
from vigil import cli

HIDDEN: Final = ("wordllama", "vigil_weights")
_found = importlib.util.find_spec


def find_spec(name: str, *rest: Any) -> Any:
    """Find what `importlib.util.find_spec` does, but for those two."""
    return None if name in HIDDEN else _found(name, *rest)


if __name__ == "__main__":
    importlib.util.find_spec = find_spec
    codebook.load.cache_clear()  # which whoever forked this has read
    cli.main()
