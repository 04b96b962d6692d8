"""Telling a running embedded nats-server about other users, without a restart.

The command line does it, not the process that started the server: it writes the configuration
anew and signals the server. The pid is the one that `vigil up` noted, and it is checked to be a
server with this home's configuration before it gets a signal, so that a pid which belongs to
somebody else by now is left alone.

It takes two signals. After the first, what accounts import from another leads nowhere, although
the new users are known: the server resolves imports against accounts that it then replaces. The
second finds them in their place (nats-server 2.15.1, measured). In between, for some milliseconds,
outside programs get "no responders"; services don't notice.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from ..errors import ConfigError, Unavailable
from ..outside.programs import accounts
from ..settings import credentials
from . import conf

SIGNALS: Final = 2
PATIENCE_S: Final = 10.0
_DONE: Final = b"Reloaded server configuration"
_FAILED: Final = b"Failed to reload server configuration"


def reload(home: Path, pid: int, *, sleep: Callable[[float], None] = time.sleep) -> None:
    """Write the configuration of `home` with its present users, and have the server `pid` read it.

    Raises:
        ConfigError: the server refused it; the old one stays in force.
        Unavailable: `pid` is no server of this home, or it didn't answer in time.
    """
    folder = home / "nats"
    with _alone(folder), _Server(pid, folder / "nats.conf") as server:
        _rewrite(folder / "nats.conf", home / "nkeys")
        for _ in range(SIGNALS):
            begun = (folder / "nats.log").stat().st_size
            server.hang_up()
            _wait_reloaded(folder / "nats.log", begun, sleep)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait for others who do the same: what one of them read could be older than what we wrote."""
    try:
        descriptor = os.open(folder / "nats.conf.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except FileNotFoundError as error:
        raise Unavailable(f"no broker ever ran in {folder}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _rewrite(file: Path, keys: Path) -> None:
    """Replace the accounts, and leave the rest (port, limits) as the server was started with."""
    text = msgspec.json.decode(file.read_bytes(), type=dict[str, msgspec.Raw])
    made = accounts(conf.users(credentials.ensure(keys)), credentials.outside(keys))
    text["accounts"] = msgspec.Raw(msgspec.json.encode(made))
    credentials.write_private(file, msgspec.json.format(msgspec.json.encode(text), indent=2))


def _wait_reloaded(log: Path, begun: int, sleep: Callable[[float], None]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with log.open("rb") as file:
            file.seek(begun)
            said = file.read()
        if _DONE in said:
            return
        if _FAILED in said:
            raise ConfigError(f"the broker refused its configuration; see the end of {log}")
        if time.monotonic() > deadline:
            raise Unavailable(f"the broker did not read its configuration in {PATIENCE_S:g} s")
        sleep(0.02)


class _Server:
    """The process, held by a descriptor where the system has such: its pid can't be reused."""

    def __init__(self, pid: int, conf: Path) -> None:
        self._pid = pid
        self._descriptor = -1
        try:
            if hasattr(os, "pidfd_open"):
                self._descriptor = os.pidfd_open(pid)
            command = _command(pid)
        except (OSError, subprocess.SubprocessError) as error:
            raise Unavailable(f"no broker with pid {pid}: {error}") from error
        if str(conf) not in command:
            self.close()
            raise Unavailable(f"pid {pid} is no broker of this home; is `vigil up` running?")

    def hang_up(self) -> None:
        if self._descriptor >= 0:
            signal.pidfd_send_signal(self._descriptor, signal.SIGHUP)
        else:
            os.kill(self._pid, signal.SIGHUP)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> _Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _command(pid: int) -> str:
    """Return the command line of a process."""
    file = Path(f"/proc/{pid}/cmdline")
    if file.exists():
        return file.read_bytes().replace(b"\0", b" ").decode()
    shown = subprocess.run(  # noqa: S603 - no shell, our own arguments
        ["/bin/ps", "-o", "command=", "-p", str(pid)],
        capture_output=True,
        check=True,
        timeout=5,
    )
    return shown.stdout.decode()
