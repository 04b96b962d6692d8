"""Checks that start no program and ask nobody: whoever runs may make them, a service, too."""

from __future__ import annotations

import os
import platform
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from ..checks import Check, fail, nearest, ok, others_can_read, warn
from ..local.token import token_file
from ..settings.config import Settings
from ..words.amounts import count_of
from . import channels, zones

PYTHON_MIN: Final[tuple[int, ...]] = (3, 11)
DISK_WARN_BYTES: Final = 2 * 1024**3
DISK_FULL_BYTES: Final = 4 * 1024**2
"""With less, something fails at the next write, whatever the limit."""


def glance(settings: Settings) -> Iterator[Check]:
    """Make these checks, and those of channels."""
    yield replace(python_version(), name="python")
    by_name = GLANCES | channels.checks(settings)
    del by_name["metrics"]  # the port is the service's own by now
    yield from run_checks(settings, by_name)


def run_checks(settings: Settings, checks: Mapping[str, channels.Examine]) -> Iterator[Check]:
    """Make some checks; those that have nothing to say are left out."""
    for name, examine in checks.items():
        if (check := examine(settings)) is not None:
            yield replace(check, name=name)


def python_version() -> Check:
    version = platform.python_version()
    if tuple(sys.version_info) >= PYTHON_MIN:
        return ok(version)
    return fail(version, "Vigil needs Python 3.11 or newer")


def config_valid(settings: Settings) -> Check:
    where = str(settings.file) if settings.file.exists() else "defaults and the environment"
    if settings.remarks:
        return warn(where, "; ".join(settings.remarks))
    return ok(where)


def home(settings: Settings) -> Check:
    path = settings.home
    if not path.exists():
        parent = nearest(path)
        if os.access(parent, os.W_OK):
            return ok(f"{path} (not there yet)")
        return fail(f"{path} can't be made", f"make {parent} writable, or set VIGIL_HOME")
    if not os.access(path, os.W_OK | os.X_OK):
        return fail(f"{path} is not writable", _remedy(path))
    if others_can_read(path):
        open_to = "everybody" if path.stat().st_mode & stat.S_IRWXO else "its group"
        return warn(f"{path} is open to {open_to}", f"chmod 700 {path}")
    return ok(str(path))


def _remedy(path: Path) -> str:
    """Say what to do about a folder that can't be written to."""
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        return "its file system is read-only: mount it for writing, or set VIGIL_HOME"
    return "correct its owner, or set VIGIL_HOME"


def credential_files(settings: Settings) -> Check:
    folder = settings.credentials
    files = [*folder.rglob("*.seed"), *folder.glob("*.secret"), token_file(settings.home)]
    loose = [path for path in files if path.exists() and others_can_read(path)]
    if loose:
        names = " ".join(map(str, loose))
        return fail(f"others can read {names}", f"chmod 600 {names}")
    count = sum(path.exists() for path in files)
    return ok(f"{count_of(count, 'file')}, for the owner only")


def disk(settings: Settings) -> Check:
    """Whether there is room: for the home, and for what of it is on another disk."""
    paths = {
        settings.home: "nothing is accepted",
        settings.broker_store: "nothing is accepted",
        settings.memory: "what is saved is kept, and not found until there is room",
        settings.workspaces: "tools can't write",
    }
    free, path = min((shutil.disk_usage(nearest(one)).free, one) for one in paths)
    found = f"{free / 1024**3:.1f} GiB free"
    if nearest(path).stat().st_dev != nearest(settings.home).stat().st_dev:
        found += f" for {path}"
    if free < max(settings.config.gateway.disk_free_bytes_min, DISK_FULL_BYTES):
        return fail(found, f"make room: {paths[path]}")
    if free < DISK_WARN_BYTES:
        return warn(found, f"make room soon: once it's full, {paths[path]}")
    return ok(found)


GLANCES: Final[dict[str, channels.Examine]] = {
    "config": config_valid,
    "home": home,
    "secrets": credential_files,
    "disk": disk,
    "zones": zones.zones,
}
"""What is looked at, by the name that is shown, in that order."""
