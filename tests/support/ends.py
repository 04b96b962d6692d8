"""Programs that end with a process of tests, which holds much: started without a copy of it."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from vigil.processes import process, with_parent

_SETPRIV: Final = "setpriv"


def ended_with_parent(argv: Sequence[str]) -> dict[str, Any]:
    """Be :func:`vigil.processes.with_parent.ended_with_parent`, by a program that says it and
    becomes the other one.

    Of a process with 550 MB a fork takes 62 ms of CPU, this 2 (2 cores). For a millisecond the
    program would outlive its parent, so services do it with the fork.
    """
    setpriv = _setpriv()
    if setpriv is None:
        return with_parent.ended_with_parent(argv)
    return {"args": [setpriv, "--pdeathsig", "KILL", "--", *argv], "process_group": 0}


def install() -> None:
    """Have all that this process starts be started so."""
    process.ended_with_parent = ended_with_parent


@functools.cache
def _setpriv() -> str | None:
    """Return the path of util-linux's; busybox has one of that name that can't."""
    found = shutil.which(_SETPRIV)
    return found if found and Path(found).resolve().name == _SETPRIV else None
