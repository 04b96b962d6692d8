"""Calls of a chat in threads that nobody waits for.

`asyncio.run` waits for the threads of its executor, and Python for those of any: whoever left by
Ctrl-C while the gateway said nothing waited up to a minute.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class LeftCalls(ThreadPoolExecutor):
    """Runs each call in a thread of its own, which ends with the program."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def run() -> None:
            with _FailureOf(future):
                future.set_result(fn(*args, **kwargs))

        future.set_running_or_notify_cancel()
        threading.Thread(target=run, name="call", daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for none."""


class _FailureOf:
    """Gives whatever is raised to whoever asked."""

    def __init__(self, future: Future[Any]) -> None:
        self._future = future

    def __enter__(self) -> None:
        """Nothing is to be done before."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if error is not None:
            self._future.set_exception(error)
        return True
