"""Services that `vigil up` forks before it begins itself: what it has imported needn't be imported
again, and is in memory once.

Only where that is sound: on Linux, while no other thread is at work. A copy has the environment of
what it is a copy of for all its life, as the kernel shows it: so none is made for a service that
may not have a variable of it (S-5). A service that ended is started again by an interpreter of its
own, since by then other threads are at work.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import NoReturn

import msgspec

from ..fields import environ
from ..processes.process import on_end
from ..processes.with_parent import die_with_parent


def may_fork() -> bool:
    """Whether a copy of this process is as good as a new one."""
    return sys.platform == "linux" and threading.active_count() == 1


def fork_services(names: Collection[str]) -> dict[str, ForkedService]:
    """Fork a process for each service, as far as that is sound here.

    The environment of this process can be read in that of a copy, so none is made that would have a
    secret it doesn't read.
    """
    ours = dict(os.environ)
    named = [name for name in names if environ.of_service(ours, name) == ours]
    if not named or not may_fork():
        return {}
    gc.freeze()  # what the collector never looks at stays the same page for all
    forked: dict[str, ForkedService] = {}
    for name in named:
        forked[name] = ForkedService(name, forked.values())
    return forked


class ForkedService:
    """A child that imports its service and waits to be told to serve, as
    `asyncio.subprocess.Process` shows one.

    Args:
        others: that were forked before, and wait.
    """

    def __init__(self, name: str, others: Iterable[ForkedService] = ()) -> None:
        self.returncode: int | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        reading, self._writing = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            # What is held open here none of them would see the end of.
            for one in (self, *others):
                os.close(one._writing)
            end_with(partial(_serve, name, reading))
        os.close(reading)

    def begin(self, env: Mapping[str, str]) -> None:
        """Have it serve, with that environment. Raises: OSError, it ended."""
        with os.fdopen(self._writing, "wb") as told:
            told.write(msgspec.json.encode(dict(env)))

    async def wait(self) -> int:
        """Return how it ended, once it did."""
        if self.returncode is None:
            ended = asyncio.Event()
            unwatch = on_end(self.pid, ended.set)
            try:
                await ended.wait()
            finally:
                unwatch()
            self._reap()
        return self.returncode or 0

    def _reap(self) -> None:
        """Take in how it ended; it did."""
        _, status = os.waitpid(self.pid, 0)
        self.returncode = os.waitstatus_to_exitcode(status)

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)


def end_with(work: Callable[[], int]) -> NoReturn:
    """Do `work` in a copy of this process, which reads nothing, and end it as an interpreter ends:
    with the code that it returns, or 1 after a failure that it tells."""
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        code = work()
    except SystemExit as ended:
        if isinstance(ended.code, str):
            sys.stderr.write(f"{ended.code}\n")  # as the interpreter does
        code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    finally:
        if isinstance(failure := sys.exc_info()[1], Exception):  # there is nobody above
            sys.excepthook(type(failure), failure, failure.__traceback__)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _serve(name: str, told: int) -> int:
    """Import a service while the broker starts, and serve as soon as it's told with what."""
    die_with_parent()
    with contextlib.suppress(ImportError):  # told as it is loaded
        importlib.import_module(f"services.{name}.__main__")
    with os.fdopen(told, "rb") as given:
        env = given.read()
    if env:  # else its parent is gone
        from .. import runtime

        os.environ.clear()
        os.environ.update(msgspec.json.decode(env, type=dict[str, str]))
        runtime.main(name)
    return 0
