"""A command and all that comes from it, where no namespace holds them together.

This process adopts what loses its parent below it, so a daemon stays within reach. It ends all of
it when the command ends, when it is asked to (SIGTERM), and when its own parent is gone.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from . import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_SIGNALS = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


def watch(parent: int, become: Callable[[], None]) -> None:
    """Start a child that becomes the command; end with its exit code, and with nothing left."""
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit(128 + signal.SIGTERM)  # it was gone before we could ask to be told
    child = os.fork()
    if child == 0:
        _run(become)
    os.closerange(0, 3)  # or whoever reads what it says would wait for us, too
    code = _wait(child)
    end_all()
    os._exit(code)


def _run(become: Callable[[], None]) -> None:
    """The child's side. Never returns."""
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        become()
    except (OSError, ImportError) as error:
        print(f"the sandbox can't be made: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(126)


def _wait(child: int) -> int:
    """Wait for the command's end, or for somebody who wants it -> an exit code."""
    while True:
        caught = signal.sigwait(_SIGNALS)
        if caught != signal.SIGCHLD:
            return 128 + caught
        for pid, status in reaped():
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code


def reaped() -> list[tuple[int, int]]:
    """Take leave of all children that have ended."""
    ended: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended.append((pid, status))


def end_all() -> None:
    """End every process below this one.

    All are stopped before any is ended: a stopped one can't start another meanwhile.
    """
    while below := below_of(os.getpid()):
        stopped: set[int] = set()
        while fresh := below - stopped:
            _signal(fresh, signal.SIGSTOP)
            stopped |= fresh
            below = below_of(os.getpid())
        _signal(below | stopped, signal.SIGKILL)
        time.sleep(0.001)
        reaped()


def _signal(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def below_of(root: int) -> set[int]:
    """Return the processes that come from `root`, but for those that have ended."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (parent := _parent_of(name)) is not None:
            children.setdefault(parent, []).append(int(name))
    found: set[int] = set()
    waiting = [root]
    while waiting:
        for pid in children.get(waiting.pop(), ()):
            found.add(pid)
            waiting.append(pid)
    return found


def _parent_of(pid: str) -> int | None:
    """Return a process's parent; None: it has ended, if nobody has taken leave of it yet."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, parent, *_ = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if state in (b"Z", b"X") else int(parent)
