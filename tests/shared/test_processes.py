"""Programs that are started, read, and ended: as services do it, under uvloop."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.support.pauses import pauses
from vigil.processes.process import Process, start

WAIT_S = 20.0
PARENT = """
import asyncio, uvloop
from vigil.processes.process import start

async def main():
    child = await start("sleep", "600", is_ended_with_us=True)
    print(child.pid, flush=True)
    await asyncio.sleep(600)

uvloop.run(main())
"""


@pytest.fixture(params=["told by the kernel", "waited for in a thread"])
def _each_watch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Linux, and as where a process can't be opened as a file."""
    if request.param == "waited for in a thread":
        monkeypatch.delattr(os, "pidfd_open")


async def shell(script: str, **more: object) -> Process:
    return await start("sh", "-c", script, **{"stdin": PIPE, "stdout": PIPE, "stderr": PIPE} | more)


@pytest.mark.usefixtures("_each_watch")
async def test_it_is_fed_and_read_to_its_end() -> None:
    process = await shell("cat; echo much >&2; exit 3")
    said = os.urandom(3_000_000)
    out, error = await asyncio.wait_for(process.communicate(said), WAIT_S)
    assert (out, error, process.returncode) == (said, b"much\n", 3)
    assert await process.wait() == 3


@pytest.mark.usefixtures("_each_watch")
async def test_a_signal_is_an_end_below_zero() -> None:
    process = await shell("exec sleep 600")
    assert process.returncode is None
    process.terminate()
    assert await asyncio.wait_for(process.wait(), WAIT_S) == -signal.SIGTERM
    process.kill()  # also where it has ended


async def test_one_that_wants_nothing_of_what_it_is_given() -> None:
    process = await shell("exec 0<&-; echo done")
    out, _ = await asyncio.wait_for(process.communicate(bytes(10_000_000)), WAIT_S)
    assert (out, process.returncode) == (b"done\n", 0)


async def test_the_end_is_known_while_somebody_else_holds_its_output() -> None:
    process = await shell("sleep 600 & echo $!; exit 5")
    assert process.stdout is not None
    other = int(await process.stdout.readline())
    try:
        assert await asyncio.wait_for(process.wait(), WAIT_S) == 5
        process.close()
        assert await asyncio.wait_for(process.stdout.read(), WAIT_S) == b""
    finally:
        os.kill(other, signal.SIGKILL)


async def test_a_line_over_the_limit_is_refused() -> None:
    process = await shell("head -c 5000 /dev/zero; exec sleep 600", limit=1000)
    assert process.stdout is not None
    with pytest.raises(ValueError, match="limit"):
        await asyncio.wait_for(process.stdout.readline(), WAIT_S)
    process.kill()
    await process.wait()


async def test_what_is_no_program_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await start(str(tmp_path / "none"))
    (tmp_path / "text").write_text("words")
    with pytest.raises(PermissionError):
        await start(str(tmp_path / "text"))


async def test_nothing_is_left_open_of_one_that_ended() -> None:
    gc.disable()  # what only the collector would close
    try:
        opened = [await _open_after_one() for _ in range(4)]
    finally:
        gc.enable()
    assert opened[1:] == opened[:1] * 3


async def _open_after_one() -> int:
    process = await shell("cat")
    await asyncio.wait_for(process.communicate(b"words"), WAIT_S)
    await asyncio.sleep(0.01)  # pipes are closed in the next turn of the loop
    return _opened()


async def _until_open(count: int) -> None:
    """Wait for what is closed in a next turn of the loop, or once a program has ended."""
    deadline = time.monotonic() + 2.0
    for pause in pauses():
        if (now := _opened()) == count:
            return
        assert time.monotonic() < deadline, f"{now} are open, not {count}"
        await asyncio.sleep(pause)


def _opened() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


@pytest.mark.usefixtures("_each_watch")
async def test_nothing_is_left_open_of_one_that_ended_while_its_pipes_were_connected() -> None:
    before = await _open_after_one()
    starting = asyncio.ensure_future(start("true", stdin=PIPE))
    await asyncio.sleep(0)
    time.sleep(0.1)  # as under load: it is over before the loop gets on
    process = await starting
    assert await asyncio.wait_for(process.wait(), WAIT_S) == 0
    await _until_open(before)
    assert await asyncio.wait_for(process.communicate(b"too late"), WAIT_S) == (b"", b"")


async def test_what_one_that_ended_is_told_is_lost_and_the_next_wait_for_it_says_so() -> None:
    process = await start("true", stdin=PIPE)
    assert process.stdin is not None
    await process.wait()
    await asyncio.sleep(0.01)
    process.stdin.write(b"words")
    with pytest.raises(ConnectionResetError):
        await process.stdin.drain()


@pytest.mark.parametrize("turns", range(6))
async def test_a_start_that_is_cancelled_closes_what_it_opened_and_nothing_else(turns: int) -> None:
    """A pipe that is closed a second time by its number is the file of somebody else by then."""
    before = await _open_after_one()
    starting = asyncio.ensure_future(shell("exec sleep 600"))
    for _ in range(turns):
        await asyncio.sleep(0)
    starting.cancel()
    started = (await asyncio.gather(starting, return_exceptions=True))[0]
    if isinstance(started, Process):
        started.kill()
        started.close()
        await started.wait()
    del starting, started
    await asyncio.sleep(0.05)
    others = [os.open(os.devnull, os.O_RDONLY) for _ in range(10)]
    gc.collect()
    for other in others:
        os.close(other)  # fails if it is closed
    await _until_open(before)


async def test_what_others_hold_and_do_not_read_is_closed() -> None:
    before = await _open_after_one()
    process = await shell("exec 3<&0; sleep 600 <&3 >/dev/null 2>&1 & echo $!")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(bytes(1_000_000))
    other = int(await process.stdout.readline())
    try:
        await asyncio.wait_for(process.wait(), WAIT_S)
        process.close()
        await _until_open(before)
    finally:
        os.kill(other, signal.SIGKILL)


async def test_whoever_gives_up_waiting_has_closed_its_pipes() -> None:
    before = await _open_after_one()
    process = await shell("sleep 600 & echo $! >&2; exec cat /dev/zero")
    assert process.stderr is not None
    other = int(await process.stderr.readline())
    try:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await process.communicate(bytes(1_000_000))
        process.kill()
        await process.wait()
        await _until_open(before)
    finally:
        os.kill(other, signal.SIGKILL)


async def test_where_the_system_tells_of_no_end_a_thread_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An old kernel, or a filter of system calls, as some containers have one."""

    def refused(_pid: int) -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(os, "pidfd_open", refused)
    process = await shell("exit 4")
    assert await asyncio.wait_for(process.wait(), WAIT_S) == 4


@pytest.mark.usefixtures("_each_watch")
async def test_how_one_ended_is_known_where_those_who_started_us_ignore_it() -> None:
    """Else the system forgets it: each end looked like a success."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        process = await start("sh", "-c", "exit 7")
        assert await asyncio.wait_for(process.wait(), WAIT_S) == 7
    finally:
        signal.signal(signal.SIGCHLD, before)


async def test_one_that_ends_with_us_has_a_group_of_its_own() -> None:
    process = await start("sleep", "600", is_ended_with_us=True)
    try:
        assert os.getpgid(process.pid) == process.pid
    finally:
        process.kill()
        await process.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_one_ends_when_who_started_it_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert Path(f"/proc/{child}/stat").read_text().split()[4] == str(child)
        parent.kill()
    deadline = time.monotonic() + WAIT_S
    for pause in pauses():
        if _is_over(child):
            break
        assert time.monotonic() < deadline, "it runs on"
        time.sleep(pause)


def _is_over(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
