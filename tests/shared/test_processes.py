"""Programs that are started, read, and ended: as services do it, under uvloop."""

from __future__ import annotations

import asyncio
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
    return sum(1 for _ in Path("/dev/fd").iterdir())


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
