"""Whether what the default needs comes as wheels for a platform, by asking the index that pip has.

    python -m bench.platforms [PLATFORM PYTHON]     e.g. macosx-arm64 3.12; by default all of them

Markers are judged as for that platform; nothing is installed, and what is fetched is removed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

LOCK: Final = Path(__file__).parents[1] / "requirements.lock"
GLIBC: Final = (17, 24, 26, 27, 28, 31, 34)
PLATFORMS: Final = {
    "linux-x86_64": ["manylinux2014_x86_64", *(f"manylinux_2_{n}_x86_64" for n in GLIBC)],
    "linux-arm64": ["manylinux2014_aarch64", *(f"manylinux_2_{n}_aarch64" for n in GLIBC)],
    "macosx-arm64": [f"macosx_{n}_{kind}" for n in (11, 12, 13, 14, 15) for kind in
                     ("0_arm64", "0_universal2")] + ["macosx_10_9_universal2"],
    "macosx-x86_64": [f"macosx_{n}_x86_64" for n in ("10_9", "10_13", "11_0", "12_0", "13_0")]
                     + ["macosx_10_9_universal2"],
}  # fmt: skip
PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")


def wanted(python: str) -> list[str]:
    """Return the pins that hold for a Python on something else than Windows."""
    names = []
    for line in LOCK.read_text().splitlines():
        if not re.match(r"[a-z]", line):
            continue
        pin, _, marker = line.rstrip(" \\").partition(" ; ")
        is_other = "== 'win32'" in marker or "== 'emscripten'" in marker
        if "python_full_version < '3.12'" in marker and python != "3.11":
            continue
        if "python_full_version >= '3.12'" in marker and python == "3.11":
            continue
        if not is_other:
            names.append(pin)
    return names


def missing(platform: str, python: str) -> list[str]:
    """Return the pins that there is no wheel of."""
    flags = [f"--platform={one}" for one in PLATFORMS[platform]]
    found = []
    with tempfile.TemporaryDirectory() as place:
        base = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet",
                "--no-deps", "--only-binary=:all:", f"--python-version={python}",
                "--implementation=cp", *flags, f"--dest={place}"]  # fmt: skip
        if not _fetched([*base, *wanted(python)]):
            found = [pin for pin in wanted(python) if not _fetched([*base, pin])]
    return found


def _fetched(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def main(*asked: str) -> None:
    pairs = [asked] if asked else [(one, python) for one in PLATFORMS for python in PYTHONS]
    for platform, python in pairs:
        print(
            json.dumps(
                {"platform": platform, "python": python, "missing": missing(platform, python)}
            )
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
