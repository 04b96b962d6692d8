"""What each test file costs in CPU, with the programs that it starts: ``pytest --costs``.

Wall time says little where several workers share two cores. Linux only. As root, each process that
runs tests is in a group of its own (cgroup v2), whose account holds all that it starts. Others
read ``/proc``, where a program that outlives who started it is missed, but for those of
:mod:`tests.support.warm`: half of a whole run.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest

from tests.support import warm

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_START: Final = "(imports, collection, and the process that forks)"
_GROUP: Final = "vigil-costs-"


class _Account:
    """The CPU of this process, and of all that it starts from now on."""

    def __init__(self) -> None:
        self._begun_s = spent_s()
        self._group = _parent()
        if self._group is not None:
            self._group /= f"{_GROUP}{os.getpid()}"
            try:
                self._group.mkdir(exist_ok=True)
                (self._group / "cgroup.procs").write_text(str(os.getpid()))
            except OSError:  # it takes root
                self._group = None

    def spent_s(self) -> float:
        if self._group is None:
            return spent_s()
        # What was spent before it had a group is its own.
        (usage,) = (self._group / "cpu.stat").read_text().split("\n", 1)[0].split()[1:]
        return self._begun_s + int(usage) / 1e6


def _parent() -> Path | None:
    """Return the folder of the group that this process is in, None: this system has none."""
    with contextlib.suppress(OSError):
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
        own = Path("/proc/self/cgroup").read_text().partition("0::/")[2].split("\n")[0]
        for _, folder, kind, *_ in mounts:
            if kind == "cgroup2":
                found = Path(folder) / own
                return found.parent if found.name.startswith(_GROUP) else found
    return None


def _clear() -> None:
    """Remove the groups of processes that have ended."""
    for folder in (_parent() or Path(os.devnull)).glob(f"{_GROUP}*"):
        with contextlib.suppress(OSError):
            folder.rmdir()


def spent_s() -> float:
    """Return the CPU seconds of this process and of all that it started, running or ended."""
    return (_ticks(os.getpid()) + _ticks_of_children(os.getpid())) / _TICKS_PER_S


def _ticks(pid: int) -> int:
    """Return user and system time of a process and of its children that ended."""
    # Behind the name, which may have spaces: fields 14 to 17 of proc(5).
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15]))


def _ticks_of_children(pid: int) -> int:
    total = 0
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # ended meanwhile: it is its parent's now
            for child in map(int, tasks.read_text().split()):
                total += _ticks_of_children(child) + _ticks(child)
    return total


class Costs:
    """Measures where tests run; adds up and prints where the run is controlled."""

    def __init__(self) -> None:
        warm.is_counted = True
        self._pid = os.getpid()
        self._account = _Account()
        self._spent_s = 0.0
        self._unsaid: dict[str, float] = {}
        self._by_file: Counter[str] = Counter()

    def _add(self, name: str) -> None:
        """What was spent since the last call was spent for `name`."""
        before_s, self._spent_s = self._spent_s, self._account.spent_s()
        self._unsaid[name] = self._spent_s - before_s

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            warm.wait()
            self._add(_START)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self) -> None:
        """Begin to count in a process of :mod:`tests.support.forks`."""
        if self._pid != os.getpid():
            self._pid, self._spent_s, self._unsaid = os.getpid(), 0.0, {}
            self._account = _Account()
            warm.begin()
            warm.wait()
            self._add(_START)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "teardown":
            self._add(item.nodeid.partition("::")[0])
            report.costs, self._unsaid = self._unsaid, {}
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._by_file.update(getattr(report, "costs", {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        self._by_file.update(self._unsaid)
        terminalreporter.section("CPU seconds by file, with all that it started")
        for name, seconds in [*self._by_file.most_common(), ("all", self._by_file.total())]:
            terminalreporter.write_line(f"{seconds:8.2f} {name}")
        _clear()
