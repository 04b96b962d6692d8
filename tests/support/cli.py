"""The real `vigil` command, as a person runs it: a process of its own, in a home of its own.

It is forked from a warm process (:mod:`tests.support.warm`), which saves half of a second of CPU
each time. A :class:`ColdCli` is the interpreter itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.support import started, warm
from vigil.local import runfile

COMMAND = (sys.executable, "-m", "vigil.cli")
TIMEOUT_S = 60.0
_TOLD = ("NO_COLOR", "COLUMNS", "LINES")
"""By whoever runs the tests, of a terminal that isn't the one of the test."""


class Cli:
    """Runs commands with `home` as $VIGIL_HOME, and nothing of the caller's own settings."""

    def __init__(self, home: Path, **environ: str) -> None:
        self.home = home
        self.environ = _clean() | {"VIGIL_HOME": str(home), "VIGIL_PORT": "0"} | environ
        self.environ.setdefault("VIGIL_MODEL__REHEARSAL_WORD_MS", "0")
        # Twice as much is set aside in each home: 0.1 s of CPU to have and to remove it.
        self.environ.setdefault("VIGIL_GATEWAY__DISK_FREE_BYTES_MIN", "0")

    @property
    def run_file(self) -> Path:
        return self.home / "run" / "up.json"

    @property
    def run_state(self) -> runfile.RunFile:
        run = runfile.read(self.run_file)
        assert run is not None
        return run

    def __call__(
        self, *args: str, stdin: str = "", code: int | None = 0, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; check its exit code unless `code` is None."""
        done = self._run(args, stdin, self.environ | environ)
        if code is not None:
            assert done.returncode == code, f"{args}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def _run(
        self, args: tuple[str, ...], stdin: str, environ: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return warm.run("vigil.cli", args, env=environ, stdin=stdin, timeout_s=TIMEOUT_S)

    def json(self, *args: str, code: int | None = 0, stdin: str = "") -> Any:
        """Run a command with --json; return what it printed."""
        return json.loads(self(*args, "--json", code=code, stdin=stdin).stdout)

    def start(self, *args: str, **environ: str) -> started.Connected | subprocess.Popen[str]:
        """Start a command that goes on; the caller ends it."""
        if not warm.IS_OFFERED:
            return _start_cold(args, self.environ | environ)
        return started.Connected("vigil.cli", args, env=self.environ | environ)

    def start_at(self, terminal: int, *args: str) -> started.Started | subprocess.Popen[bytes]:
        """Start a command at a terminal that shows colours and tells its own size."""
        if not warm.IS_OFFERED:
            return _start_cold_at(terminal, args, self._of_terminal())
        return started.at_terminal("vigil.cli", args, env=self._of_terminal(), terminal=terminal)

    def _of_terminal(self) -> dict[str, str]:
        return {k: v for k, v in self.environ.items() if k not in _TOLD} | {"TERM": "xterm"}

    def end(self) -> None:
        """End what runs in this home, by its pid."""
        run = runfile.running(self.run_file)
        if run is None:
            return
        os.kill(run.pid, signal.SIGTERM)
        if not runfile.wait_ended(self.run_file, timeout_s=35):
            os.kill(run.pid, signal.SIGKILL)


class ColdCli(Cli):
    """Runs each command with an interpreter of its own, for what is about starts."""

    def _run(
        self, args: tuple[str, ...], stdin: str, environ: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return _run_cold(args, stdin, environ)

    def start(self, *args: str, **environ: str) -> subprocess.Popen[str]:
        return _start_cold(args, self.environ | environ)

    def start_at(self, terminal: int, *args: str) -> subprocess.Popen[bytes]:
        return _start_cold_at(terminal, args, self._of_terminal())


def _start_cold_at(
    terminal: int, args: tuple[str, ...], environ: dict[str, str]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, *args], stdin=terminal, stdout=terminal, stderr=terminal, env=environ,
        start_new_session=True,
    )  # fmt: skip


def _start_cold(args: tuple[str, ...], environ: dict[str, str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*COMMAND, *args], stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environ
    )


def _run_cold(
    args: tuple[str, ...], stdin: str, environ: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *args],
        input=stdin,
        capture_output=True,
        text=True,
        env=environ,
        timeout=TIMEOUT_S,
        check=False,
    )


def _clean() -> dict[str, str]:
    dropped = ("VIGIL_", "ANTHROPIC_", "OPENAI_", "AUTONOMY_", "NATS_")
    return {k: v for k, v in os.environ.items() if not k.startswith(dropped)} | {"NO_COLOR": "1"}


@contextlib.contextmanager
def running_vigil(home: Path, *args: str, **environ: str) -> Iterator[Cli]:
    """`vigil up --detach`, ended at the end."""
    cli = Cli(home, **environ)
    try:
        cli("up", "--detach", *args)
        yield cli
    finally:
        cli.end()


def eventually(is_true: Callable[[], bool], timeout_s: float = 20.0) -> None:
    """Wait for a condition, with a deadline. Most looks are a command: they get a quarter of it."""
    begun = time.monotonic()
    while True:
        looked_at = time.monotonic()
        if is_true():
            return
        now = time.monotonic()
        assert now < begun + timeout_s, "it did not come true in time"
        time.sleep(min(max(0.02, 3 * (now - looked_at), (now - begun) / 8), 0.5))


def is_alive(pid: int) -> bool:
    """Whether a process with that pid runs (a zombie doesn't)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # before or while it's read
        return False
