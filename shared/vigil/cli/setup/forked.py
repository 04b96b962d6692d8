"""`vigil up` in the background, forked: what the command has imported needn't be imported again.

Only where that is sound: on Linux, while no other thread is at work.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO

from vigil.local.forks import end_with


class ForkedStart:
    """A child of this process in a session of its own, as `subprocess.Popen` shows one.

    Args:
        log: where it writes.
    """

    def __init__(self, main: Callable[[], None], log: IO[bytes]) -> None:
        self.returncode: int | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if not self.pid:
            end_with(partial(_apart, main, log.fileno()))

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)


def _apart(main: Callable[[], None], log: int) -> int:
    """Do `main` in a session of its own, with nothing of the caller's."""
    os.setsid()
    os.dup2(log, 1)
    os.dup2(log, 2)
    # What Python opened isn't inheritable, and may be closed by whatever holds it; what is came
    # from the caller, who may wait for its end.
    for opened in [int(one.name) for one in Path("/proc/self/fd").iterdir()]:
        with contextlib.suppress(OSError):  # the one that listed them
            if opened > 2 and os.get_inheritable(opened):
                os.close(opened)
    main()
    return 0
