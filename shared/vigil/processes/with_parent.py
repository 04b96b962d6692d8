"""A program that ends when the process that started it is gone, however that ended."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any


def die_with_parent() -> None:
    """In a child: a group of its own, and SIGKILL when the parent is gone (Linux)."""
    os.setpgid(0, 0)
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def ended_with_parent(argv: Sequence[str]) -> dict[str, Any]:
    """Return what `subprocess.Popen` takes, so that a program is as :func:`die_with_parent` has it
    from its first moment: that takes a copy of this process (fork)."""
    return {"args": list(argv), "preexec_fn": die_with_parent}
