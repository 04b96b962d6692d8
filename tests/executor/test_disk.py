"""The disk that all share, and commands that want all of it (RELIABILITY S10, X-6)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from services.executor.sandbox.box import Kind
from services.executor.sandbox.choice import why_not
from services.executor.workspace import disk as disk_module
from services.executor.workspace.disk import ROOM, Floor, pause_s
from services.executor.workspace.usage import FolderUsage, nameless_bytes, usage_of
from tests.support.boxes import KINDS
from tests.support.hands import Hands, choice_of

MIB = 1024**2
DISK_BYTES = 512 * MIB
ROOM_BYTES = 16 * MIB
"""What messages need."""
QUOTA_BYTES = 96 * MIB


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of half a gigabyte; needs root on Linux."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small tmpfs needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture(params=KINDS)
async def hands(request: pytest.FixtureRequest, small_disk: Path) -> AsyncIterator[Hands]:
    kind = cast(Kind, request.param)
    if reason := await why_not(kind):
        pytest.skip(reason)
    hands = Hands(
        small_disk, choice_of(kind), room_bytes=ROOM_BYTES, workspace_bytes_max=QUOTA_BYTES,
        workspace_files_max=2000, shell_timeout_s=60.0,
    )  # fmt: skip
    yield hands
    await hands.source.close()


def free(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


@contextlib.contextmanager
def lowest(folder: Path) -> Iterator[list[int]]:
    """Look at the disk all the while; the list has the least that was free."""
    found, done = [free(folder)], threading.Event()

    def look() -> None:
        while not done.wait(0.001):
            found[0] = min(found[0], free(folder))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()


RESERVES = """
import os
for n in range(1000):
    opened = os.open(f"f{n}", os.O_RDWR | os.O_CREAT)
    os.posix_fallocate(opened, 0, 32 * 2**20)
"""
WRITES = """
import os
block = bytes(2**20)
for _ in range(8):
    if not os.fork():
        break
for n in range(1000):
    with open(f"w{os.getpid()}-{n}", "wb") as file:
        for _ in range(8):
            file.write(block)
"""
MAPS = """
import mmap, os
for n in range(1000):
    with open(f"m{n}", "w+b") as file:
        file.truncate(16 * 2**20)
        with mmap.mmap(file.fileno(), 0) as found:
            for at in range(0, len(found), 4096):
                found[at] = 1
"""
NAMELESS = """
import os
block = bytes(2**20)
kept = []
for n in range(1000):
    file = open("n", "wb")
    os.unlink("n")
    kept.append(file)
    for _ in range(8):
        file.write(block)
        file.flush()
"""
NAMELESS_MAPPED = """
import mmap, os
kept = []
for n in range(1000):
    with open("n", "w+b") as file:
        os.unlink("n")
        file.truncate(8 * 2**20)
        found = mmap.mmap(file.fileno(), 0)
    kept.append(found)
    for at in range(0, len(found), 4096):
        found[at] = 1
"""
FILLERS = (RESERVES, WRITES, MAPS, NAMELESS, NAMELESS_MAPPED)
AGAIN = ((KINDS[0], RESERVES), (KINDS[1], WRITES), (KINDS[1], MAPS))
"""Files with names are counted in the same way in both kinds of sandbox; those without are found
among the processes, and these differ."""


@pytest.mark.parametrize(
    ("hands", "filler"),
    [
        pytest.param(
            kind,
            filler,
            id=f"{kind}-{number}",
            marks=[pytest.mark.long] if (kind, filler) in AGAIN else [],
        )
        for kind in KINDS
        for number, filler in enumerate(FILLERS)
    ],
    indirect=["hands"],
)
async def test_who_fills_the_disk_stops_at_their_quota_and_cleans_up(
    hands: Hands, filler: str
) -> None:
    """Messages have their room all the while, others go on writing, and who filled their workspace
    empties it themself.
    """
    home = hands.settings.home
    await hands.call("write_file", path="fill.py", content=filler)
    with lowest(home) as least:
        told = await hands.call("shell", command="python3 fill.py")
    assert told.is_error
    assert f"its workspace may hold {QUOTA_BYTES} bytes" in told.content
    assert least[0] > ROOM * ROOM_BYTES
    other = await hands.call("shell", user="bob", command="echo works > file; cat file")
    assert other.content == "works\n"
    is_nameless = filler in (NAMELESS, NAMELESS_MAPPED)
    refused = await hands.call("shell", command="echo more > more")
    assert refused.is_error is not is_nameless
    if not is_nameless:
        assert "nothing could be written" in refused.content
        file = await hands.call("write_file", path="note", content="x" * 100)
        assert (file.is_error, "may hold" in file.content) == (True, True)
    removed = await hands.call("shell", command="rm -f [fmnw]*[0-9] f* m* n* w*; ls")
    assert not [line for line in removed.content.splitlines() if line.startswith(("f", "m", "w"))]
    again = await hands.call("shell", command="echo more > more; cat more")
    assert again.content == "more\n"


MANY = """
import os, time
n = 0
while True:
    n += 1
    if n % 100 == 0:
        time.sleep(0.01)
    os.mkdir(f"d{n}")
    open(f"f{n}", "w").close()
"""


async def test_too_many_files_end_a_command(hands: Hands) -> None:
    """Folders too; and a disk runs out of names as it runs out of bytes."""
    await hands.call("write_file", path="many.py", content=MANY)
    told = await hands.call("shell", command="python3 many.py")
    assert "its workspace may hold 2000 files" in told.content
    refused = await hands.call("shell", command="echo x > more")
    assert "nothing could be written" in refused.content
    await hands.call("shell", command="find . -name '[df]*' -delete")
    assert (await hands.call("shell", command="echo x > f; cat f")).content == "x\n"


DEEP = """
import os
for _ in range(200):
    os.mkdir("d")
    os.chdir("d")
"""


async def test_folders_without_an_end_are_too_many(hands: Hands) -> None:
    """Ended while it goes on, or refused afterwards."""
    await hands.call("write_file", path="deep.py", content=DEEP)
    await hands.call("shell", command="python3 deep.py; rm deep.py")
    refused = await hands.call("shell", command="echo x > more")
    assert "nothing could be written" in refused.content
    await hands.call("shell", command="rm -rf d")
    assert (await hands.call("shell", command="ls; echo x > f; cat f")).content == "more\nx\n"


async def test_a_disk_that_others_have_filled(hands: Hands) -> None:
    """No command begins to write, and all may clean up; files aren't written either; whoever looks
    is told; with room again all is as before.
    """
    await hands.call("write_file", path="big", content="x")
    ballast = hands.settings.home / "ballast"
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free(ballast) - ROOM * ROOM_BYTES)
    told = await hands.call("shell", command="cat big && rm big; echo y > new; ls")
    assert told.content.startswith("x")
    assert "nothing could be written: the disk was almost full" in told.content
    file = await hands.call("write_file", path="note", content="x")
    assert (file.content, file.is_error) == ("not written: the disk was almost full", True)
    ballast.unlink()
    assert (await hands.call("shell", command="echo y > new; cat new")).content == "y\n"


async def test_a_command_ends_while_others_fill_the_disk(
    hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within milliseconds, by a thread that needs no event loop; what is set aside is given back,
    so that messages have their room although it was faster than anybody looks.
    """
    monkeypatch.setattr(disk_module, "KEEP_S", 0.1)
    home = hands.settings.home
    disk = hands.source.disk
    tells: dict[str, str] = {}
    reserve = home / "reserve"

    async def until(is_so: Callable[[], bool]) -> None:
        while not is_so():
            await asyncio.sleep(0.01)

    def is_kept() -> bool:
        return reserve.exists() and reserve.stat().st_blocks * 512 == 2 * ROOM_BYTES

    keeping = asyncio.ensure_future(disk.run(tells))
    async with asyncio.timeout(60):
        await until(is_kept)
        task = asyncio.ensure_future(hands.call("shell", command="echo > begun; sleep 60"))
        await until((hands.workspace / "begun").exists)
        ballast = home / "ballast"
        with ballast.open("wb") as file:  # less than all: others may take of it meanwhile
            os.posix_fallocate(file.fileno(), 0, free(home) - 256 * 1024)
        assert (await task).content == "[ended: the disk was almost full]"
        await until(lambda: free(home) >= ROOM_BYTES)
        await until(lambda: "disk" in tells)
        assert "commands can remove files and not write" in tells["disk"]
        ballast.unlink()
        await until(lambda: not tells and is_kept())
    keeping.cancel()


# ---------------------------------------------------------------- counting


def test_usage_counts_what_is_there_and_that_once(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(10**9)
    (tmp_path / "a").write_bytes(bytes(65536))
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    (tmp_path / "out").symlink_to("/usr")
    (tmp_path / "d" / "closed").mkdir(parents=True)
    (tmp_path / "d" / "closed" / "file").write_bytes(bytes(65536))
    (tmp_path / "d" / "closed").chmod(0)
    found = usage_of(tmp_path, files_max=100)
    assert found.files == 7
    assert 2 * 65536 <= found.bytes_used < 3 * 65536
    assert usage_of(tmp_path, files_max=3).files == 4


def test_files_without_a_name_count_for_who_has_them_open(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.write(bytes(MIB))
        file.flush()
        assert nameless_bytes({os.getpid()}, tmp_path) == 0
        (tmp_path / "file").unlink()
        assert nameless_bytes({os.getpid()}, tmp_path) == MIB
        assert usage_of(tmp_path, files_max=10) == FolderUsage()
    assert nameless_bytes({os.getpid(), 2**22 + 1}, tmp_path) == 0


def test_the_fuller_the_disk_the_sooner_it_is_looked_at() -> None:
    """At 4 GB/s nothing gets further than half of the way between two looks."""
    for disk in (10**7, 10**8, 10**9, 10**11):
        assert pause_s(disk) * 4 * 10**9 <= max(disk / 2, 0.002 * 4 * 10**9)


async def test_nothing_is_ended_after_it_was_let_go(tmp_path: Path) -> None:
    first, second = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    is_let_go, late = threading.Event(), threading.Event()

    def end() -> None:
        if is_let_go.is_set():
            late.set()
        loop.call_soon_threadsafe(first.set)

    floor = Floor(tmp_path, 2**62, spend_at=0, spend=lambda: None)
    with floor.guarding(end):
        await first.wait()
    is_let_go.set()
    with floor.guarding(lambda: loop.call_soon_threadsafe(second.set)):
        await second.wait()
    assert not late.is_set()
