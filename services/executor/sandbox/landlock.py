"""Landlock: the kernel's rules about files, which a process can put upon itself.

For where bubblewrap can't make namespaces: most containers. A command may open what the rules name
and nothing else, for good and with all that it starts. What Landlock leaves open, system calls
that change a file's mode or owner by its path, sockets, and on older kernels signals, a filter of
system calls closes (:mod:`.launch.seccomp`).

A namespace of processes is what it hasn't got. The launcher stays beside the command, adopts what
makes itself a daemon and ends it; that fails only if somebody kills the launcher itself with
SIGKILL: then what has already left the command's session lives on, within the rules and until its
limit of processor time.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from .box import (
    LAUNCH,
    NETWORK_SETTINGS,
    SETTINGS,
    SYSTEM,
    Box,
    Sandbox,
    launcher,
    plan_of,
    python_folder,
)

DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def landlock() -> Sandbox:
    """Return the sandbox; whether it works here, :mod:`.choice` tells."""
    return Sandbox("landlock", _line_of)


def _line_of(command: Sequence[str], box: Box) -> list[str]:
    shown = [*SYSTEM, *SETTINGS, *(NETWORK_SETTINGS if box.network else ()), str(python_folder())]
    plan = [
        *plan_of(box),
        f"filter={'landlock-network' if box.network else 'landlock'}",
        f"parent={os.getpid()}",
        *(f"read={path}" for path in (*shown, *box.readable)),
        *(f"write={path}" for path in (box.workspace, *box.folders)),
        *(f"device={path}" for path in DEVICES),
    ]
    return launcher(str(LAUNCH.parent), plan, command)


def unconfined() -> Sandbox:
    """Return what is no sandbox: limits and an end for all, but the user's own rights.

    Only for ``allow_unsafe``.
    """
    return Sandbox("off", _unconfined_line_of)


def _unconfined_line_of(command: Sequence[str], box: Box) -> list[str]:
    plan = [*plan_of(box), f"parent={os.getpid()}"]
    return launcher(str(LAUNCH.parent), plan, command)
