"""Tests in several processes, each forked when all are collected: ``pytest --forks 5``.

A worker of xdist imports and collects everything by itself, which is 8 s of CPU for each; here it
is done once. A process takes the tests of one file after the other. One that dies fails the test
that it ran, and another goes on with the rest of that file. So does one that waits for ever, which
tells where.

Files that mostly wait, for leases and servers that come back, have some more processes, from the
start: among the others, they'd leave the processor idle as long as several of them run at once.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import random
import tempfile
from collections import deque
from collections.abc import Container, Sequence
from itertools import groupby
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any, Final

import pytest
from _pytest.capture import FDCapture

from tests.support import hung, lent
from vigil.processes.with_parent import die_with_parent

NAME: Final = "forks"
_MORE: Final = "more"
"""Asks for the next file."""
_GONE: Final = "gone"
IMPORTED: Final = (
    "apprise", "markdown_it", "numpy", "openai", "qdrant_client",
    "qdrant_client.http", "snowballstemmer",
    *(f"services.{name}.__main__" for name in
      ("gateway", "cortex", "memory", "scheduler", "delivery", "executor")),
)  # fmt: skip
"""What is imported where it's used, and takes seconds: once, instead of in each process."""
_context: Final = multiprocessing.get_context("fork")


Files = deque[Sequence[int]]
"""Files that nobody took yet: the places of the tests of each."""


class _Worker:
    """One process, as the one that forked it sees it, and where it takes its files from."""

    def __init__(self, process: ForkProcess, sources: Sequence[Files]) -> None:
        self.process = process
        self.sources = sources
        self.left: deque[int] = deque()
        """The places of tests that it was told to run and hasn't told of."""
        self.last = 0
        """The place of the test that it told of last."""
        self.last_words = ""


class Forks:
    """Has the collected tests run by `count` processes, and half as many more for those that wait.

    Args:
        waiting: the files that mostly wait.
        imported: the modules that are imported before it's forked.
        test_max_s: how long a test may take, and so what is ended behind the last of a process.
    """

    def __init__(
        self,
        count: int,
        waiting: Container[Path] = (),
        imported: Sequence[str] = (),
        test_max_s: float = hung.TEST_MAX_S,
    ) -> None:
        self._count = count
        self._imported = imported
        self._test_max_s = test_max_s
        self._waiting = waiting
        self._started = 0
        self._workers: dict[Connection, _Worker] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if not session.config.option.collectonly:
            for name in self._imported:
                importlib.import_module(name)
            if self._imported:
                importlib.import_module("services.cortex.models.anthropic").import_sdk()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        option = session.config.option
        if option.collectonly or (session.testsfailed and not option.continue_on_collection_errors):
            return None  # pytest says what is to be said
        places = range(len(session.items))
        busy, waiting = Files(), Files()
        for path, group in groupby(places, key=lambda place: session.items[place].path):
            (waiting if path in self._waiting else busy).append([*group])
        try:
            for _ in range(min(self._count, len(busy) + len(waiting))):
                self._start(session, (busy, waiting))
            for _ in range(min(self._count // 2, len(waiting))):
                self._start(session, (waiting,))
            while self._workers:
                for pipe in wait(list(self._workers)):
                    assert isinstance(pipe, Connection)
                    self._hear(session, pipe)
        finally:
            for worker in self._workers.values():
                worker.process.kill()
        return True

    def _start(self, session: pytest.Session, sources: Sequence[Files]) -> None:
        ours, theirs = _context.Pipe()
        name = f"{NAME}-{self._started}"
        self._started += 1
        process = _context.Process(
            target=_work, args=(session, theirs, name, self._test_max_s), name=name
        )
        process.start()
        theirs.close()
        self._workers[ours] = _Worker(process, sources)

    def _hear(self, session: pytest.Session, pipe: Connection) -> None:
        """Hand out the next file, pass on what is told of a test, or clear up after an end."""
        worker = self._workers[pipe]
        heard: Any = _GONE
        with contextlib.suppress(EOFError, ConnectionResetError):
            heard = pipe.recv()
        if heard == _GONE:
            del self._workers[pipe]
            self._end(session, worker)
        elif heard == _MORE:
            source = next(filter(None, worker.sources), None)
            file = source.popleft() if source else ()
            worker.left.extend(file)
            with contextlib.suppress(BrokenPipeError):  # that it's gone is heard next
                pipe.send(file)
        elif isinstance(heard, str):
            worker.last_words = heard
        else:
            read = session.config.hook.pytest_report_from_serializable
            reports = [read(config=session.config, data=data) for data in heard]
            worker.last = worker.left.popleft()
            self._tell(session, worker.last, reports)

    def _end(self, session: pytest.Session, worker: _Worker) -> None:
        worker.process.join()
        if not worker.left:
            if worker.process.exitcode:
                self._tell(session, worker.last, [_failed(session.items[worker.last], worker)])
            return
        place = worker.left[0]
        report = _failed(session.items[place], worker)
        worker.left.popleft()
        if worker.left:
            worker.sources[0].appendleft([*worker.left])
        if any(worker.sources):
            self._start(session, worker.sources)
        self._tell(session, place, [report])

    def _tell(
        self, session: pytest.Session, place: int, reports: Sequence[pytest.TestReport]
    ) -> None:
        item, hook = session.items[place], session.config.hook
        for report in reports:
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)


def _failed(item: pytest.Item, worker: _Worker) -> pytest.TestReport:
    """Of the test that it ran, or else of what ends behind the test that it told of last."""
    why = worker.last_words or (
        f"the process that ran it ended with exit code {worker.process.exitcode}"
    )
    return pytest.TestReport(
        item.nodeid, item.location, {}, "failed", why, "call" if worker.left else "teardown"
    )


# ---------------------------------------------------------------- in a process that was forked


class _Reports:
    """What is told of the test that runs."""

    def __init__(self) -> None:
        self.told: list[pytest.TestReport] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.told.append(report)


def _work(session: pytest.Session, pipe: Connection, name: str, test_max_s: float) -> None:
    """Run the tests of one file after the other, until there are none."""

    def give_up(why: str) -> None:
        pipe.send(why)
        os._exit(1)

    die_with_parent()
    random.seed()
    config, reports = session.config, _Reports()
    _be_alone(config, name)
    config.pluginmanager.register(reports)
    watch = hung.Watch(give_up, test_max_s)
    while file := _next_file(pipe):
        # After the last test of a file ends what is of that file, whichever comes next: that isn't
        # asked for before, as another process may be free earlier.
        following = [*(session.items[place] for place in file[1:]), session]
        for place, next_ in zip(file, following, strict=True):
            config.hook.pytest_runtest_protocol(item=session.items[place], nextitem=next_)
            told, reports.told = reports.told, []
            to_data = config.hook.pytest_report_to_serializable
            pipe.send([to_data(config=config, report=report) for report in told])
            watch.heard()
    session._setupstate.teardown_exact(None)
    lent.end()
    pipe.close()
    os._exit(0)  # a test that failed may have left a thread that would be waited for, for ever


def _next_file(pipe: Connection) -> Sequence[int]:
    """Return the places of its tests; of none: there is no more."""
    pipe.send(_MORE)
    file: Sequence[int] = pipe.recv()
    return file


def _be_alone(config: pytest.Config, name: str) -> None:
    """Have nothing in common with the other processes: terminal, captured output, folder."""
    config.pluginmanager.unregister(name="terminalreporter")
    # The same objects, as a library may hold the one that was `sys.stderr` when it was imported.
    captured = config.pluginmanager.getplugin("capturemanager")._global_capturing
    for one in (captured.out, captured.err):
        if isinstance(one, FDCapture):
            with tempfile.TemporaryFile() as own:
                os.dup2(own.fileno(), one.tmpfile.fileno(), inheritable=False)
    factory: Any = config._tmp_path_factory  # type: ignore[attr-defined]
    folder: Path = factory.getbasetemp() / name
    factory._given_basetemp, factory._basetemp = folder, None
