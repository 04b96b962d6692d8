"""A Postgres of its own: on a free port of loopback, in a temporary folder, with its defaults."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from vigil.broker.ports import free_port

DEBIAN: Final = "/usr/lib/postgresql"
"""Where Debian has the programs, off the PATH."""
START_S: Final = 30.0


class Postgres:
    """One that runs."""

    def __init__(self, programs: Path, url: str) -> None:
        self._programs = programs
        self._url = url

    def create(self, name: str) -> str:
        """Create an empty database; return its URL. Raises: RuntimeError."""
        _run({}, self._programs / "createdb", "--maintenance-db", f"{self._url}/postgres", name)
        return f"{self._url}/{name}"


def find() -> Path | None:
    """Return the folder of its programs, of the newest version; None: there is none."""
    found = shutil.which("initdb")
    folders = sorted(Path(DEBIAN).glob("*/bin"), key=lambda path: float(path.parent.name))
    folders += [Path(found).resolve().parent] if found else []
    return next((one for one in reversed(folders) if (one / "postgres").exists()), None)


@contextlib.contextmanager
def running(programs: Path) -> Iterator[Postgres]:
    """Run one, and end it. Raises: RuntimeError."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="bench-postgres-") as folder:
        owner = _owner(Path(folder))
        _run(
            owner, programs / "initdb", "--pgdata", f"{folder}/data", "--username", "bench",
            "--auth", "trust", "--encoding", "UTF8", "--locale", "C",
        )  # fmt: skip
        process = subprocess.Popen(
            [programs / "postgres", "-D", f"{folder}/data", "-p", str(port), "-h", "127.0.0.1",
             "-k", folder],
            cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **owner,
        )  # fmt: skip
        try:
            _wait(programs, port)
            yield Postgres(programs, f"postgresql://bench@127.0.0.1:{port}")
        finally:
            process.terminate()
            process.wait()


def _owner(folder: Path) -> dict[str, Any]:
    """Return who is to run it: it refuses root, who gives the folder to somebody else then."""
    if os.getuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            os.chown(folder, entry.pw_uid, entry.pw_gid)
            return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise RuntimeError("Postgres won't run as root, and there is no user postgres or nobody")


def _run(owner: dict[str, Any], program: Path, *arguments: str) -> None:
    done = subprocess.run(
        [program, *arguments], check=False, cwd="/", capture_output=True, text=True, **owner
    )
    if done.returncode != 0:
        raise RuntimeError(f"{program.name} failed: {done.stdout}{done.stderr}")


def _wait(programs: Path, port: int) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            return _run({}, programs / "pg_isready", "-h", "127.0.0.1", "-p", str(port))
        except RuntimeError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
