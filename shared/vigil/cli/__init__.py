"""The command line: `vigil`.

Data goes to stdout, messages to stderr; `--json` makes the data JSON. Heavy libraries are
imported inside the commands that need them, so that `vigil --help` answers at once.
"""

from __future__ import annotations

from ..imports import lean
from .app import main

__all__ = ["lean", "main"]
