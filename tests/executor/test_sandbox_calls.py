"""System calls that reach past rules about files: to others of the same user, and to the disk."""

from __future__ import annotations

import asyncio
import ctypes
import os
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

import pytest

from services.executor.sandbox.launch import seccomp
from tests.support.boxes import KINDS, UID, Boxes, boxes_of

LIBC = ctypes.CDLL(None)
pytestmark = pytest.mark.skipif(not seccomp.is_known(), reason="no filter for this architecture")


@pytest.fixture(params=KINDS)
async def boxes(request: pytest.FixtureRequest, tmp_path: Path) -> Boxes:
    return await boxes_of(request.param, tmp_path)


@pytest.fixture
def victim() -> Iterator[int]:
    """A process of the user that commands run as, outside."""
    with Popen(["sleep", "600"], user=UID) as process:
        yield process.pid
        process.kill()


async def told_by(boxes: Boxes, program: str, *words: object, network: bool = False) -> list[str]:
    """Run a program of Python in the box; return what it said, line by line."""
    script = boxes.workspace / "program.py"
    script.write_text(program)
    script.chmod(0o644)
    outcome = await boxes.run(f"python3 program.py {' '.join(map(str, words))}", network=network)
    assert outcome.exit_code == 0, outcome.output
    return outcome.output.splitlines()


# ---------------------------------------------------------------- sockets

PACKETS = """
import socket, sys
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
    for place in (sys.argv[1], chr(0) + sys.argv[2]):
        try:
            ours, _ = socket.socketpair(socket.AF_UNIX, kind)
            ours.sendto(b"out", place)
            print("sent")
        except OSError as error:
            pass
        try:
            ours, _ = socket.socketpair(socket.AF_UNIX, kind)
            ours.sendmsg([b"out"], [], 0, place)
            print("sent")
        except OSError as error:
            pass
for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    ours.send(b"in")
    print(theirs.recv(10).decode())
"""


@pytest.mark.parametrize("network", [False, True])
async def test_a_pair_of_sockets_sends_nowhere_else(
    boxes: Boxes, tmp_path: Path, network: bool
) -> None:
    """S10: one of packets takes an address with each packet, so being connected binds it to
    nobody; by a file, and by a name in the network that it shares.
    """
    # Outside of pytest's own folder, which only its owner may enter, anybody could send there.
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    name = f"vigil-test-{secrets.token_hex(8)}"
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as by_file,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as by_name,
    ):
        by_file.bind(str(tmp_path / "s"))
        (tmp_path / "s").chmod(0o777)
        by_name.bind("\0" + name)
        by_name.setblocking(False)
        by_file.setblocking(False)
        said = await told_by(boxes, PACKETS, tmp_path / "s", name, network=network)
        for one in (by_file, by_name):
            with pytest.raises(BlockingIOError):
                one.recv(10)
    assert said == ["in", "in"]


# ---------------------------------------------------------------- others of the same user

OTHERS = """
import ctypes, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
column = 0 if platform.machine() == "x86_64" else 1
pid, uid = int(sys.argv[1]), os.getuid()
param = ctypes.create_string_buffer(48)
mask = ctypes.create_string_buffer(b"\\1" + bytes(127))
sched = ctypes.create_string_buffer(48)
ctypes.cast(sched, ctypes.POINTER(ctypes.c_uint32))[0] = 48
CALLS = {
    "setpriority": ((141, 140), [(0, pid, 19), (1, pid, 19), (2, uid, 19), (2, 0, 19)]),
    "ioprio_set": ((251, 30), [(1, pid, 3 << 13), (2, pid, 3 << 13), (3, uid, 3 << 13)]),
    "sched_setaffinity": ((203, 122), [(pid, 128, mask)]),
    "sched_setparam": ((142, 118), [(pid, param)]),
    "sched_setscheduler": ((144, 119), [(pid, 3, param)]),
    "sched_setattr": ((314, 274), [(pid, sched, 0)]),
    "prlimit64": ((302, 261), [(pid, 7, None, param)]),
    "kill": ((62, 129), [(pid, 0)]),
    "ptrace": ((101, 117), [(0x4206, pid, 0, 0)]),
    "process_vm_readv": ((310, 270), [(pid, None, 0, None, 0, 0)]),
    "process_vm_writev": ((311, 271), [(pid, None, 0, None, 0, 0)]),
    "kcmp": ((312, 272), [(pid, pid, 0, 0, 0)]),
    "migrate_pages": ((256, 238), [(pid, 0, None, None)]),
    "move_pages": ((279, 239), [(pid, 0, None, None, None, 0)]),
    "get_robust_list": ((274, 100), [(pid, param, mask)]),
    "rt_sigqueueinfo": ((129, 138), [(pid, 0, param)]),
}
for name, (numbers, tries) in CALLS.items():
    for words in tries:
        if libc.syscall(numbers[column], *words) >= 0:
            print(name)
opened = libc.syscall(434, pid, 0)
if opened >= 0:
    for name, number, words in (
        ("pidfd_send_signal", 424, (opened, 0, None, 0)), ("pidfd_getfd", 438, (opened, 0, 0)),
        ("setns", (308, 268)[column], (opened, 0x40000000)), ("process_madvise", 440,
        (opened, None, 0, 20, 0)), ("process_mrelease", 448, (opened, 0)),
    ):
        if libc.syscall(number, *words) >= 0:
            print(name)
# Before it has memory of its own, whose id may be the same.
shared = ctypes.create_string_buffer(256)
if libc.syscall((31, 195)[column], int(sys.argv[3]), 2, shared) >= 0:
    print("shmctl")
for name, numbers, words in (
    ("shmget", (29, 194), (7, 4096, 0o1666)), ("semget", (64, 190), (7, 1, 0o1666)),
    ("msgget", (68, 186), (7, 0o1666)),
):
    if libc.syscall(numbers[column], *words) >= 0 and sys.argv[2] == "landlock":
        print(name)
for name, numbers, words in (
    ("keyctl", (250, 219), (0, -3, 1)), ("add_key", (248, 217), (b"user", b"a", b"b", 1, -3)),
    ("io_uring_setup", (425, 425), (8, ctypes.create_string_buffer(120))),
    ("userfaultfd", (323, 282), (1,)), ("fanotify_init", (300, 262), (0x200, 0)),
    ("bpf", (321, 280), (0, None, 0)), ("perf_event_open", (298, 241), (None, 0, -1, -1, 0)),
    ("syslog", (103, 116), (10, None, 0)),
):
    if libc.syscall(numbers[column], *words) >= 0:
        print(name)
os.nice(1)
os.sched_setaffinity(0, os.sched_getaffinity(0))
os.setpriority(os.PRIO_PROCESS, 0, 19)
if libc.syscall((251, 30)[column], 1, 0, 3 << 13) != 0:
    print("not oneself")
"""


async def test_nothing_is_done_to_others_of_the_same_user(boxes: Boxes, victim: int) -> None:
    """S10: neither slowed, nor pinned, looked into, signalled or met in shared memory; to be nice
    oneself is all right."""
    shared = LIBC.shmget(0, 4096, 0o1666)
    try:
        said = await told_by(boxes, OTHERS, victim, boxes.sandbox.kind, shared)
    finally:
        LIBC.shmctl(shared, 0, None)
    if boxes.sandbox.kind == "bubblewrap":  # all that it can name is its own there
        said = [name for name in said if name not in ("setpriority", "ioprio_set")]
    assert said == []
    assert os.getpriority(os.PRIO_PROCESS, victim) == os.getpriority(os.PRIO_PROCESS, 0)
    assert os.sched_getaffinity(victim) == os.sched_getaffinity(0)


LISTENS = """
import ctypes, os, select, sys
libc = ctypes.CDLL(None, use_errno=True)
opened = libc.inotify_init1(os.O_NONBLOCK)
if libc.inotify_add_watch(opened, sys.argv[1].encode(), 0xFFF) >= 0:
    print("listens")
"""


async def test_nobody_listens_to_files_outside(boxes: Boxes, tmp_path: Path) -> None:
    """S10: who opens which file there, by name; no right to read is asked for that."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    (tmp_path / "file").touch(0o644)
    assert await told_by(boxes, LISTENS, tmp_path / "file") == []


# ---------------------------------------------------------------- the disk, all at once

TAKES = """
import ctypes, fcntl, os, struct
size = 8 * 2**20
libc = ctypes.CDLL(None, use_errno=True)
def used():
    return os.stat("big").st_blocks * 512
for mode in (0, 1, 2 | 1, 16, 16 | 1):
    opened = os.open("big", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    libc.fallocate(opened, mode, ctypes.c_long(0), ctypes.c_long(size))
    if used():
        print("fallocate", mode)
    os.close(opened)
for number in (0x40305828, 0x4030582A, 0x40305839):
    opened = os.open("big", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    try:
        fcntl.ioctl(opened, number, struct.pack("hhqqiI16x", 0, 0, 0, size, 0, 0))
    except OSError:
        pass
    if used():
        print("ioctl", hex(number))
    os.close(opened)
opened = os.open("big", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
attributes = bytearray(28)
try:
    fcntl.ioctl(opened, 0x801C581F, attributes)
    fcntl.ioctl(opened, 0x401C5820, bytes(attributes))
    print("attributes")
except OSError:
    pass
for change in (
    lambda: os.setxattr("big", "user.a", b"b"), lambda: os.setxattr(opened, "user.a", b"b"),
    lambda: os.setxattr(".", "user.a", b"b"), lambda: os.removexattr(".", "user.kept"),
):
    try:
        change()
        print("changed an attribute")
    except OSError:
        pass
os.posix_fallocate(opened, 0, size)
print(os.fstat(opened).st_size == size)
"""


async def test_a_disk_is_filled_by_writing_alone(boxes: Boxes) -> None:
    """Nothing takes room faster than it can be seen, or where it isn't seen. The C library still
    reserves room, by writing."""
    os.setxattr(boxes.workspace, "user.kept", b"yes")
    said = await asyncio.wait_for(told_by(boxes, TAKES), 30)
    assert said == ["True"]
    assert os.getxattr(boxes.workspace, "user.kept") == b"yes"
