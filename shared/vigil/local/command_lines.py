"""What a command line means in a person's shell, written so that it means the same elsewhere.

A program that Vigil starts later has neither the shell's PATH nor its folder, and doesn't see what
a version manager would choose there. So a command is looked up when it is added, and kept as paths.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

SYSTEM: Final = ("/usr", "/bin", "/sbin")
"""Where the sandbox finds programs by itself."""
MANAGERS: Final = ("pyenv", "nodenv", "rbenv", "asdf", "mise", "volta")
"""Version managers that put a stand-in for each program on the PATH; all have a command `which`."""
MANAGER_S: Final = 10.0
SHEBANG_BYTES_MAX: Final = 256


def resolved(words: Sequence[str]) -> list[str]:
    """Return a command line with the paths of its program and of the file that it is given.

    A program that isn't found stays as it is. A script that leaves it to PATH what runs it
    (``#!/usr/bin/env node``) is started by what that is here, unless the system's.
    """
    found = shutil.which(Path(words[0]).expanduser())
    if found is None:
        return list(words)
    program = behind(Path(found).absolute())
    arguments = _with_file(words[1:])
    by = run_by(program)
    runner = shutil.which(by) if by and "/" not in by else None
    if runner is None or _is_system(Path(runner)):
        return [str(program), *arguments]
    return [str(behind(Path(runner).absolute())), str(program.resolve()), *arguments]


def behind(program: Path) -> Path:
    """Return the program that a version manager's stand-in would start here."""
    manager = _manager_of(program)
    if manager is None:
        return program
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        printed = subprocess.run(  # noqa: S603 - the person's own manager, which their shell would run
            [manager, "which", program.name],
            capture_output=True,
            text=True,
            check=True,
            timeout=MANAGER_S,
        ).stdout.strip()
        if printed and Path(printed).is_file():
            return Path(printed)
    return program


def _manager_of(program: Path) -> str | None:
    """Return the manager whose stand-in a program is; None: it is none."""
    names = (program.resolve().name, program.parent.parent.name.removeprefix("."))
    is_stand_in = program.parent.name == "shims" or names[0] in ("mise", "volta-shim")
    if not is_stand_in or program.name in MANAGERS:
        return None
    manager = next((one for one in MANAGERS for name in names if name.startswith(one)), "")
    beside = program.parent.parent / "bin" / manager
    return str(beside) if manager and beside.is_file() else shutil.which(manager or "pyenv")


def _with_file(arguments: Sequence[str]) -> list[str]:
    """Return arguments with an absolute path for the first, if it is a file of this folder."""
    first = next((word for word in arguments if not word.startswith("-")), None)
    if first is None or not Path(first).is_file():
        return list(arguments)
    place = list(arguments).index(first)
    return [*arguments[:place], str(Path(first).absolute()), *arguments[place + 1 :]]


def run_by(script: Path) -> str:
    """Return what the first line of a script says that it is run by: a path, or for
    ``#!/usr/bin/env`` the name to look for; empty: it says nothing."""
    try:
        with script.open("rb") as file:
            line = file.read(SHEBANG_BYTES_MAX).partition(b"\n")[0].decode("utf-8", "replace")
    except OSError:
        return ""
    words = line.removeprefix("#!").split() if line.startswith("#!") else []
    if words and Path(words[0]).name == "env":
        return next((word for word in words[1:] if not word.startswith("-")), "")
    return words[0] if words else ""


def _is_system(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in SYSTEM)
