"""Programs of ours that go on beside a test, forked instead of begun anew."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TextIO

from tests.support import warm


class Started:
    """A forked program, as `subprocess.Popen` shows one."""

    def __init__(self, process: warm.Process) -> None:
        self._process = process
        self.pid = process.pid
        self.send_signal = process.send_signal
        self.kill = process.kill
        self.terminate = process.terminate

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    def poll(self) -> int | None:
        return self._process.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it ended. Raises: TimeoutError."""
        return self._process.wait_within(timeout)


class Connected(Started):
    """One with pipes to it."""

    def __init__(self, module: str, args: Sequence[str], *, env: Mapping[str, str]) -> None:
        (stdin, to), (out, stdout), (error, stderr) = (os.pipe() for _ in range(3))
        try:
            super().__init__(
                warm.start(module, args, env=env, stdin=stdin, stdout=stdout, stderr=stderr)
            )
        finally:
            for descriptor in (stdin, stdout, stderr):
                os.close(descriptor)
        self.stdin = os.fdopen(to, "w")
        self.stdout, self.stderr = os.fdopen(out), os.fdopen(error)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Close what it reads, wait until it ended, and return what is left of what it wrote."""
        with contextlib.suppress(BrokenPipeError):
            self.stdin.close()
        with ThreadPoolExecutor(2) as readers:
            out, error = (readers.submit(_rest, one) for one in (self.stdout, self.stderr))
            try:
                self.wait(timeout)
            except TimeoutError:
                self.kill()
                raise
            return out.result(), error.result()


def _rest(stream: TextIO) -> str:
    """Return what is left in it; nothing if that was asked before."""
    if stream.closed:
        return ""
    with stream:
        return stream.read()


def at_terminal(
    module: str, args: Sequence[str], *, env: Mapping[str, str], terminal: int
) -> Started:
    """Run ``python -m module args`` with a terminal as all that it reads and writes."""
    process = warm.start(module, args, env=env, stdin=terminal, stdout=terminal, stderr=terminal)
    return Started(process)
