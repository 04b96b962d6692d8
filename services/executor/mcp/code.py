"""What of this machine a program needs to see of itself: its package, and what runs that.

A command is rarely one file. It may be a link; a script that names its interpreter; the Python of a
virtual environment, which is a link to one that pyenv, uv or conda have laid somewhere, and which
has its library there. Each of these is followed, and shown read-only; what merely lies near is not.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec

from vigil.local.command_lines import run_by

from ..sandbox.box import SYSTEM

MANIFESTS: Final = ("package.json", "pyproject.toml")
LEVELS_MAX: Final = 2
"""How far above a script its package's manifest is looked for."""
LINKS_MAX: Final = 40
"""On the way to a file, as the kernel has it."""
INSTALLED: Final = ("lib", "lib64", "ssl", "share/zoneinfo", "share/terminfo")
"""Of a folder where an interpreter is installed: what it needs. Others may be a person's own."""
BESIDE: Final = {"uvx": "uv", "npx": "node"}
"""Programs that start another which lies beside them."""

Link = tuple[Path, str]
"""A symbolic link, in a folder without any, and what it says."""


class ProgramCode(NamedTuple):
    """What is shown to a program of itself."""

    shown: tuple[Path, ...]
    """Files and folders, without symbolic links."""
    links: tuple[Link, ...]
    """On the ways there."""


def code_of(line: Sequence[str], home: Path, path: str) -> ProgramCode:
    """Return what a command line needs: of its command and the first file among its arguments the
    whole package and what runs it; of other files, the file.

    Args:
        home: Vigil's, which is never shown.
        path: where the program will look for others, such as its interpreter.
    """
    found = _Needed(home, path)
    for place, word in enumerate(file for file in line if _is_file(file)):
        if place < 2:
            found.program(Path(word))
        else:
            found.file(Path(word))
    return found.code()


def _is_file(word: str) -> bool:
    return Path(word).is_absolute() and Path(word).is_file()


class _Needed:
    def __init__(self, home: Path, path: str) -> None:
        self._home = home.resolve()
        self._path = path
        self._shown: dict[Path, None] = {}
        self._links: dict[Path, str] = {}
        self._seen: set[Path] = set()

    def code(self) -> ProgramCode:
        return ProgramCode(tuple(self._shown), tuple(self._links.items()))

    def file(self, file: Path) -> None:
        """Show a file or folder, and the way there."""
        links, real = way_to(file)
        self._links |= dict(links)
        is_shown = _is_system(real) or any(real.is_relative_to(one) for one in self._shown)
        if not is_shown and real.exists():
            self._shown[real] = None

    def program(self, file: Path, *, is_named: bool = True) -> None:
        """Show a program with its package and what runs it.

        Args:
            is_named: by the person. What code names by itself may be code of somebody who means no
                good: of that only programs are shown, and environments of Python.
        """
        if file in self._seen or not file.is_file() or not (is_named or os.access(file, os.X_OK)):
            return
        self._seen.add(file)
        links, real = way_to(file)
        self._links |= dict(links)
        # By its own link a virtual environment's Python finds the environment.
        for place in dict.fromkeys(
            (file.parent.resolve() / file.name, *(p for p, _ in links), real)
        ):
            package = package_of(place, self._home)
            if package is not None and (is_named or (package / "pyvenv.cfg").is_file()):
                self.file(package)
                self._environment(package)
        self.file(real)
        for folder in _installed(real):
            self.file(folder)
        self._interpreter(real)
        if beside := BESIDE.get(file.name):
            self.program(file.parent / beside, is_named=False)

    def _environment(self, folder: Path) -> None:
        """Show what a virtual environment stands on: its Python, and what is installed in place."""
        if base := _base_of(folder):
            self.program(base, is_named=False)
        for project in _editable(folder):
            if list(_own([project.resolve()], self._home)):
                self.file(project)

    def _interpreter(self, script: Path) -> None:
        """Show what a script says that it is run by."""
        by = run_by(script)
        if by and (found := by if "/" in by else shutil.which(by, path=self._path)):
            self.program(Path(found), is_named=False)


def way_to(path: Path) -> tuple[list[Link], Path]:
    """Return the symbolic links on the way to a file, and where they lead."""
    links: list[Link] = []
    at, left = Path("/"), list(path.parts[1:])
    while left:
        name = left.pop(0)
        if name == "..":
            at = at.parent
            continue
        here = at / name
        if not here.is_symlink() or len(links) == LINKS_MAX:
            at = here
            continue
        target = str(here.readlink())
        links.append((here, target))
        parts = Path(target).parts
        if target.startswith("/"):
            at, parts = Path("/"), parts[1:]
        left[:0] = parts
    return links, at


def package_of(file: Path, home: Path) -> Path | None:
    """Return the folder that holds a program's code and no more; None: the file is alone."""
    above = list(file.parents)
    outermost = [folder for folder in above if folder.name == "node_modules"]
    if outermost:
        return outermost[-1]
    environment = file.parent.parent
    if (environment / "pyvenv.cfg").is_file() and not home.is_relative_to(environment):
        return environment
    for folder in _own(above[:LEVELS_MAX], home):
        if any((folder / manifest).is_file() for manifest in MANIFESTS):
            return folder
    return None


def _own(folders: Iterable[Path], home: Path) -> Iterator[Path]:
    """Yield folders that hold neither Vigil's home nor a person's."""
    for folder in folders:
        if home.is_relative_to(folder) or Path.home().is_relative_to(folder):
            return
        yield folder


def _base_of(environment: Path) -> Path | None:
    """Return the Python that a virtual environment was made with; None: it is none."""
    try:
        text = (environment / "pyvenv.cfg").read_text("utf-8", "replace")
    except OSError:
        return None
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "home":
            found = sorted(Path(value.strip()).glob("python3*")) or [Path(value.strip(), "python")]
            return found[0]
    return None


class _Origin(msgspec.Struct):
    """Where a package was installed from, as PEP 610 has it."""

    url: str
    dir_info: dict[str, bool] = {}


def _editable(environment: Path) -> Iterator[Path]:
    """Yield the folders of packages that an environment runs from where they are written.

    What is written there must be the package by its own manifest, too: any package may have said of
    itself that it is somewhere else.
    """
    for file in environment.glob("lib/python3*/site-packages/*.dist-info/direct_url.json"):
        try:
            origin = msgspec.json.decode(file.read_bytes(), type=_Origin)
        except (OSError, msgspec.DecodeError):
            continue
        parts = urlsplit(origin.url)
        project = Path(unquote(parts.path))
        name = file.parent.name.partition("-")[0]
        if origin.dir_info.get("editable") and parts.scheme == "file" and _is_of(project, name):
            yield project


def _is_of(project: Path, name: str) -> bool:
    """Return whether a folder holds the package of that name, by its ``pyproject.toml``."""
    try:
        project_file = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    own = (
        project_file.get("project", {}).get("name", "")
        if isinstance(project_file.get("project"), dict)
        else ""
    )
    return isinstance(own, str) and _plain(own) == _plain(name) != ""


def _plain(name: str) -> str:
    """Return a package's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _installed(program: Path) -> Iterator[Path]:
    """Yield what belongs to an interpreter that isn't the system's: its library, beside `bin`."""
    folder = program.parent.parent
    if program.parent.name != "bin" or _is_system(program) or folder == Path("/"):
        return
    is_python = program.name.startswith("python") and any(folder.glob("lib/python3*/os.py"))
    if is_python or (folder / "conda-meta").is_dir():
        yield from (folder / name for name in INSTALLED)
    elif program.name == "node":
        yield folder / "lib" / "node_modules"


def _is_system(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in SYSTEM)
