"""What runs on this machine: a lock that dies with its holder, and a file that tells where.

`vigil up` holds the lock for its whole life, so "is it running" needs no guess about a pid that
may belong to somebody else by now. The file beside it tells the command line where to connect.
It says nothing about health; the services answer for themselves.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from ..errors import ConfigError, VigilError
from ..topology import SERVICES

APART: Final[Mapping[int, Collection[str]]] = {
    1: (),
    2: ("cortex",),
    len(SERVICES): SERVICES,
}
"""The services that have a process of their own, by the number of processes there are."""
PROCESSES: Final = 2
"""Unless told otherwise: see ADR 43."""
PROBE_S: Final = 0.5
"""How long a start waits for somebody who only looks at the lock."""


class AlreadyRunning(VigilError):
    """Another `vigil up` holds this home."""


class RunFile(msgspec.Struct, frozen=True, kw_only=True):
    """Where a running `vigil up` can be reached. `services` maps a name to its pid."""

    pid: int
    url: str
    nats_url: str
    started_at: datetime
    processes: int = 1
    """In how many the services run; the broker has one more."""
    model: str = ""
    is_ready: bool = False
    starting: dict[str, str] = {}
    """What each service is at that isn't ready yet, while it starts."""
    is_stuck: bool = False
    """Whether nothing of that has moved for a minute."""
    services: dict[str, int] = {}
    broker_pid: int = 0
    """Of the embedded broker, whichever was started last; 0: there is none."""


def read(path: Path) -> RunFile | None:
    """Return the file, or None if there is none that can be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunFile)
    except (OSError, msgspec.DecodeError):
        return None


def write(path: Path, run: RunFile) -> None:
    """Replace the file, whole or not at all."""
    from ..settings.credentials import (
        write_private,  # loads the nkey library, which readers don't need
    )

    write_private(path, msgspec.json.format(msgspec.json.encode(run), indent=2))


def running(path: Path) -> RunFile | None:
    """Return the file if the process that wrote it lives."""
    return read(path) if _is_held(path) else None


def wait_ended(
    path: Path, *, timeout_s: float, sleep: Callable[[float], None] = time.sleep
) -> bool:
    """Wait until nobody holds the lock; return whether that came true in time."""
    deadline = time.monotonic() + timeout_s
    while _is_held(path):
        if time.monotonic() > deadline:
            return False
        sleep(0.05)
    return True


def refusal(run: RunFile | None) -> str:
    """Say that somebody else is there."""
    where = f" (pid {run.pid}, {run.url})" if run else ""
    return f"Vigil already runs here{where}: `vigil status` shows it, `vigil down` ends it"


class Lock:
    """The right to run `vigil up` in a home. The system releases it when the process ends."""

    def __init__(self, path: Path) -> None:
        self._run_file = path
        self._descriptor = -1

    def acquire(self) -> None:
        """Take it. Raises: AlreadyRunning, ConfigError: the file can't be written."""
        deadline = time.monotonic() + PROBE_S
        try:
            self._descriptor = _open(self._run_file)
        except OSError as error:
            home = self._run_file.parent.parent
            raise ConfigError(f"{home} can't be written: {error.strerror or error}") from error
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    os.close(self._descriptor)
                    raise AlreadyRunning(refusal(read(self._run_file))) from None
                time.sleep(0.02)
            else:
                return

    def release(self) -> None:
        """Give it back, and remove the file that is no longer true."""
        self._run_file.unlink(missing_ok=True)
        os.close(self._descriptor)


def _open(run_file: Path) -> int:
    run_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return os.open(run_file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)


def _is_held(run_file: Path) -> bool:
    try:
        # Only read: whoever looks changes nothing, also where nothing can be written.
        descriptor = os.open(run_file.with_suffix(".lock"), os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)
