"""What a check of `vigil doctor` answers: ok, warn (works, but you should know), or fail."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Literal

import msgspec


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """What one look found. `advice` is what to do if the state isn't ok."""

    name: str = ""
    """`vigil doctor` gives it: what looks need not know what it is called."""
    state: Literal["ok", "warn", "fail"]
    found: str
    advice: str = ""


def ok(found: str) -> Check:
    return Check(state="ok", found=found)


def warn(found: str, advice: str) -> Check:
    return Check(state="warn", found=found, advice=advice)


def fail(found: str, advice: str) -> Check:
    return Check(state="fail", found=found, advice=advice)


def others_can_read(path: Path) -> bool:
    """Return whether others than the owner can read a file that is there."""
    return bool(path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))


def of_secret(home: Path, file: str) -> Check | None:
    """Return what is wrong with a file that has a secret: it isn't there, or others can read it.
    None: nothing, or none is named.

    Args:
        file: as a section names it: from the home on, or absolute.
    """
    path = home / Path(file).expanduser()
    if not file:
        return None
    if not path.exists():
        return fail(f"{path} isn't there", "write the secret into it, for you alone to read")
    if others_can_read(path):
        return warn(f"others can read {path}", f"chmod 600 {path}")
    return None


def nearest(path: Path) -> Path:
    """Return a path, or the first above it that is there."""
    return next(one for one in (path, *path.parents) if one.exists())
