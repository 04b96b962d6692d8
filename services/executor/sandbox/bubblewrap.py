"""Bubblewrap: a box with a file system, processes and a network of its own.

The command sees the system's programs, its folders and nothing else of this machine; it can't name
another process, let alone signal it. When the outermost bwrap ends, by itself or killed with
SIGKILL, the kernel ends everything inside, also what has made itself a daemon: that is what a PID
namespace promises.

As root no user namespace is made: there the command would be root outside, and so exempt from the
limit on processes. Instead it becomes a user of its own, inside, before it starts.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
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

INSIDE: Final = "/run/vigil"
TEMPORARY_BYTES_MAX: Final = 256 * 1024 * 1024
"""Of /tmp and of /dev/shm, which are memory."""


def find() -> str | None:
    """Return the program, if it is installed."""
    return shutil.which("bwrap")


def bubblewrap(program: str, *, is_root: bool | None = None) -> Sandbox:
    """Return the sandbox; `is_root` None: ask who we are."""
    root = os.geteuid() == 0 if is_root is None else is_root

    def line_of(command: Sequence[str], box: Box) -> list[str]:
        plan = [*plan_of(box), f"filter={'network' if box.network else 'namespace'}"]
        return [
            program,
            *_namespaces(box, root),
            *_files(box),
            # Root owns the kernel's switches, and needs no right to turn them.
            *(("--remount-ro", "/proc") if root and box.uid is None else ()),
            "--",
            *launcher(INSIDE, plan, command),
        ]

    return Sandbox("bubblewrap", line_of)


def _namespaces(box: Box, is_root: bool) -> list[str]:
    kinds = ["pid", "ipc", "uts", "cgroup-try", *([] if is_root else ["user"])]
    if not box.network:
        kinds.append("net")
    # What becomes another user needs the right to, until it has.
    kept = ["CAP_SETUID", "CAP_SETGID"] if is_root and box.uid is not None else []
    return [
        *(f"--unshare-{kind}" for kind in kinds),
        *("--die-with-parent", "--new-session", "--hostname", "box"),
        *("--cap-drop", "ALL"),
        *(word for right in kept for word in ("--cap-add", right)),
    ]


def _files(box: Box) -> list[str]:
    shown = [*SETTINGS, *(NETWORK_SETTINGS if box.network else ())]
    return [
        *_system(SYSTEM),
        *("--proc", "/proc", "--dev", "/dev"),
        *_temporary("/tmp"),  # noqa: S108
        *_temporary("/dev/shm"),  # noqa: S108
        *_parents(
            [*map(Path, shown), *box.readable, *box.folders, box.workspace, python_folder()]
            + [link for link, _ in _links(box)]
        ),
        *(word for path in shown for word in ("--ro-bind-try", path, path)),
        *_bound("--ro-bind", _outside_of_system((python_folder(),))),
        *("--ro-bind", str(LAUNCH), f"{INSIDE}/{LAUNCH.name}"),
        *_bound("--ro-bind", box.readable),
        *(word for link, target in _links(box) for word in ("--symlink", target, str(link))),
        *_bound("--bind", box.folders),
        *_bound("--bind", (box.workspace,)),
        *("--remount-ro", "/dev", "--remount-ro", "/"),
    ]


def _system(paths: Iterable[str]) -> list[str]:
    """Show the system as it is: on most, /bin and /lib are links into /usr."""
    line: list[str] = []
    for path in map(Path, paths):
        if path.is_symlink():
            line += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            line += ["--ro-bind", str(path), str(path)]
    return line


def _temporary(path: str) -> list[str]:
    return ["--size", str(TEMPORARY_BYTES_MAX), "--perms", "1777", "--tmpfs", path]


def _parents(paths: Iterable[Path]) -> list[str]:
    """Make the folders on the way, which anybody may pass through: bwrap's own would be its own."""
    above = {parent for path in _outside_of_system(paths) for parent in path.parents}
    return [word for path in sorted(above) if path != Path("/") for word in ("--dir", str(path))]


def _bound(how: str, paths: Iterable[Path]) -> list[str]:
    return [word for path in paths for word in (how, str(path), str(path))]


def _links(box: Box) -> list[tuple[Path, str]]:
    """Return the links that are made: those in what is shown are there already."""
    shown = (*map(Path, SYSTEM), python_folder(), *box.readable, *box.folders, box.workspace)
    return [
        (link, target)
        for link, target in box.links
        if not any(link.is_relative_to(path) for path in shown)
    ]


def _outside_of_system(paths: Iterable[Path]) -> list[Path]:
    return [path for path in paths if not any(path.is_relative_to(known) for known in SYSTEM)]
