"""Where tests keep their files, and a broker for each test that asks for one (about 0.2 s)."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import structlog
import uvloop
from hypothesis import settings

from tests.support import (
    boxes,
    certificates,
    costs,
    ends,
    engines,
    examples,
    forks,
    lent,
    ports,
    takeover,
    warm,
)
from tests.support.stack import Stack, running_stack
from vigil.calendars import apart
from vigil.imports import garbage
from vigil.settings.live import followed

_MEMORY: Final = Path("/dev/shm")
_MEMORY_FREE_MIN: Final = 4 * 1024**3
"""In bytes; the vectors of one memory service alone are a tenth of a gigabyte."""

# Files of tests live in memory where there is room: brokers and SQLite sync each write, and on a
# disk that is half of what a test waits for. A killed process loses nothing in either; what a full
# disk does is tested on file systems that those tests mount.
if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free >= _MEMORY_FREE_MIN:
    tempfile.tempdir = str(_MEMORY)

# What a shell starts in the background ignores Ctrl-C, and so would all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What is imported and collected stays, and is much: nobody looks through it for garbage.
gc.disable()

# Drawn in colours, as `structlog` does where `rich` is installed, a traceback takes up to a second.
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(
            colors=False, exception_formatter=structlog.dev.plain_traceback
        ),
    ]
)

# Services of tests have sections that no file has; whoever looks at a file that changes says so.
followed.POLL_S = 3600.0  # type: ignore[misc]

settings.load_profile(examples.FAST)
boxes.share()
certificates.share()
engines.share()
ports.share()

_TESTS: Final = Path(__file__).parent
_SLOWEST: Final = {
    name: place for place, name in enumerate((_TESTS / "slowest.txt").read_text().split())
}
"""Files that took the longest when all were measured; one that is gone does no harm."""
_WAITING: Final = frozenset(_TESTS / name for name in (_TESTS / "waiting.txt").read_text().split())
"""Files that mostly wait: of all that they take, a sixth is CPU (`--costs`)."""

_WARM: Final = "warm"
"""What a worker is told by this name: where the process is that forks for all workers."""

_PURE_FIXTURES: Final = frozenset(
    {"monkeypatch", "request", "tmp_path", "capsys", "caplog", "event_loop_policy"}
)
_PROGRAM_STARTERS: Final = frozenset({"subprocess", "Cli", "ColdCli", "running_vigil", "asyncio"})


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only tests that start nothing")
    parser.addoption("--long", action="store_true", help="also what only `make chaos` runs")
    parser.addoption("--costs", action="store_true", help="print the CPU that each file costs")
    parser.addoption("--forks", type=int, default=0, help="how many processes run tests at once")


def pytest_configure(config: pytest.Config) -> None:
    ends.install()
    if config.getoption("--costs"):
        config.pluginmanager.register(costs.Costs())
    if count := config.getoption("--forks"):
        imported = () if config.getoption("--quick") else forks.IMPORTED
        config.pluginmanager.register(forks.Forks(count, _WAITING, imported))
    warm.shared_address = getattr(config, "workerinput", {}).get(_WARM, "")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Have one process fork for all workers, unless what it costs is told by file."""
    if warm.IS_OFFERED and not node.config.getoption("--costs"):
        node.workerinput[_WARM] = warm.address()


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run tests on the loop that services are served on."""
    return {"uvloop": uvloop.new_event_loop}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    places = {path: _place(path) for path in {item.path for item in items}}
    items.sort(key=lambda item: places[item.path])
    if not config.getoption("--long"):
        _keep(config, items, lambda item: item.get_closest_marker("long") is None)
    if config.getoption("--quick"):
        _keep(config, items, _is_pure)


def _keep(
    config: pytest.Config, items: list[pytest.Item], is_kept: Callable[[pytest.Item], bool]
) -> None:
    left_out = [item for item in items if not is_kept(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if is_kept(item)]


def pytest_collection_finish(session: pytest.Session) -> None:
    garbage.keep()
    option = session.config.option
    if option.collectonly or all(map(_is_pure, session.items)):
        return
    if not (option.costs and option.forks):  # then each process has one of its own
        warm.begin()


def pytest_sessionfinish() -> None:
    lent.end()


def _place(path: Path) -> int:
    """Where its file comes: the slowest first, so that no worker is left alone with one."""
    return _SLOWEST.get(path.relative_to(_TESTS).as_posix(), len(_SLOWEST))


def _is_pure(item: pytest.Item) -> bool:
    """Whether a test neither waits nor starts a program: no event loop, no fixture of ours."""
    if not isinstance(item, pytest.Function) or inspect.iscoroutinefunction(item.function):
        return False
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    starts = _PROGRAM_STARTERS & vars(item.module).keys()
    return not starts and set(item.fixturenames) <= _PURE_FIXTURES | set(parameters)


@pytest.fixture
def own_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker of one's own, for what kills, pauses or configures it, or looks into its files."""
    monkeypatch.setattr(lent, "is_offered", False)


@pytest.fixture
async def bare(tmp_path: Path) -> AsyncIterator[Stack]:
    """A provisioned broker with no service running; start what the test is about."""
    async with running_stack(tmp_path, services=()) as stack:
        yield stack


@pytest.fixture
def halved_times(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leases and redeliveries in half the time, but for the long form."""
    if request.config.getoption("--long", default=False):
        yield
        return
    with takeover.halved():
        yield


@pytest.fixture
def forked_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have calendars read by processes that needn't import for it, of which a test has ten.

    `tests/shared/test_calendar_reading.py` has them read as they are: by an interpreter alone.
    """
    if warm.IS_OFFERED:
        monkeypatch.setattr(apart, "converted", warm.converted)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MB; needs root on Linux."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small tmpfs needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)
