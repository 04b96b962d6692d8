"""structlog, imported without rich, for whoever imports this first.

It imports rich, if that is there, for tracebacks in colours, which we don't print (`logs`). That is
a tenth of a second and 6 MB of each process (structlog 26.1, rich 15).
"""

from __future__ import annotations

import importlib
import sys


def _import_structlog() -> None:
    if "structlog" in sys.modules or "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # so that importing it fails
    try:
        importlib.import_module("structlog")
    finally:
        del sys.modules["rich"]


_import_structlog()
