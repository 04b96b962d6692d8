"""A filter of system calls, put upon this process: what namespaces and Landlock leave open.

The filter says no with an error that programs know how to live with, and never kills, but for a
foreign architecture. It is a list of what is refused: what it doesn't name, the box itself has to
bear. Numbers are those of the kernel's tables; an architecture that isn't here has no filter.

Source: the kernel's documentation of seccomp; Docker's default profile for what is worth refusing.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

from . import kernel, landlock

Instruction = tuple[int, int, int, int]

LOAD, AND, JUMP_EQ, JUMP_GE, JUMP_ANY_BIT, RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
ALLOW, ERROR, KILL = 0x7FFF0000, 0x00050000, 0x80000000
NUMBER_AT, ARCHITECTURE_AT, ARGUMENTS_AT = 0, 4, 16
X32 = 0x40000000
"""Set in the numbers of a second table that x86-64 has; no program needs it."""
SET_MODE_FILTER = 1

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
SECCOMP = {"x86_64": 317, "aarch64": 277}

# name: (x86_64, aarch64); None: the architecture hasn't got it.
_EVERYWHERE: dict[str, tuple[int | None, int | None]] = {
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "setns": (308, 268), "unshare": (272, 97), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "open_by_handle_at": (304, 265), "keyctl": (250, 219),
    "add_key": (248, 217), "request_key": (249, 218), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "kexec_load": (246, 104),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "swapon": (167, 224), "reboot": (169, 142), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "acct": (163, 89), "syslog": (103, 116), "fanotify_init": (300, 262),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "process_mrelease": (448, 448),
    "kcmp": (312, 272), "migrate_pages": (256, 238), "file_setattr": (469, 469),
}  # fmt: skip
"""Roads to the kernel that no tool needs; io_uring would be one around this filter."""
_ABSENT: dict[str, tuple[int | None, int | None]] = {
    "fallocate": (285, 47),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
}
"""What counts as missing from the file system. A disk that is filled by writing is seen while it
fills; `fallocate` takes all of it at once. What lies in attributes isn't seen by who looks whether
a folder is empty. Libraries write zeros, and copy without attributes, then."""
_RESERVATIONS = (0x40305828, 0x4030582A, 0x40305839, 0x401C5820)
"""ioctl: FS_IOC_RESVSP, FS_IOC_RESVSP64 and FS_IOC_ZERO_RANGE are `fallocate` by another name;
FS_IOC_FSSETXATTR makes each write take as much as it likes, or changes whose quota counts."""
_BY_PATH: dict[str, tuple[int | None, int | None]] = {
    "chmod": (90, None),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "inotify_add_watch": (254, 27),
}
"""What changes, or listens to, a file that can't be opened: Landlock doesn't look at these."""
_SHARED: dict[str, tuple[int | None, int | None]] = {
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190),
    "semop": (65, 193), "semtimedop": (220, 192), "semctl": (66, 191), "msgget": (68, 186),
    "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187), "mq_open": (240, 180),
    "mq_unlink": (241, 181), "ptrace": (101, 117),
}  # fmt: skip
"""What a user's processes share by name or number, without a namespace of their own."""
_SIGNALS: dict[str, tuple[int | None, int | None]] = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
}
_CLONE, _CLONE3, _SOCKET, _SOCKETPAIR = (56, 220), (435, 435), (41, 198), (53, 199)
_IOCTL = (16, 29)
_ONLY: tuple[tuple[tuple[int, int], tuple[tuple[int, int], ...]], ...] = (
    ((280, 88), ((1, 0),)),  # utimensat: of what is open
    ((302, 261), ((0, 0),)),  # prlimit64
    ((141, 140), ((0, 0), (1, 0))),  # setpriority: PRIO_PROCESS, oneself
    ((251, 30), ((0, 1), (1, 0))),  # ioprio_set: IOPRIO_WHO_PROCESS, oneself
    ((203, 122), ((0, 0),)),  # sched_setaffinity
    ((142, 118), ((0, 0),)),  # sched_setparam
    ((144, 119), ((0, 0),)),  # sched_setscheduler
    ((314, 274), ((0, 0),)),  # sched_setattr
    ((279, 239), ((0, 0),)),  # move_pages
    ((274, 100), ((0, 0),)),  # get_robust_list
)
"""Calls that are about oneself with these values (argument, value), and with any other about any
process of the same user."""
_OWNERS = (((72, 25), (8, 15)), (_IOCTL, (0x8901, 0x8902)))
"""fcntl and ioctl, with what names the process that is signalled when a file can be read: any of
the same user, with any signal."""

NEW_NAMESPACES = 0x7E020000
UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
STREAM, SEQPACKET, KIND = 1, 5, 0xF
FAMILIES = {
    "namespace": (UNIX, INET, INET6, NETLINK),
    "network": (INET, INET6, NETLINK),
    "landlock": (),
    "landlock-network": (INET, INET6, NETLINK),
}
"""What sockets there may be. With an empty network of one's own, all of the usual ones; with the
machine's, none to the machine's own services by a name or a file."""


def is_known() -> bool:
    """Tell whether there is a filter for this architecture."""
    return os.uname().machine in ARCHITECTURES and sys.byteorder == "little"


def restrict(kind: str) -> None:
    """Put the filter upon this process and all that it starts, for good.

    Raises:
        OSError: there is none for this architecture, and without namespaces that's not enough.
    """
    machine = os.uname().machine
    if not is_known():
        if kind in ("namespace", "network"):
            return
        raise OSError(errno.ENOSYS, f"no filter of system calls is known for {machine}")
    program = program_of(kind, machine, landlock.abi())
    packed = b"".join(struct.pack("<HBBI", *one) for one in program)
    code = ctypes.create_string_buffer(packed, len(packed))
    header = ctypes.create_string_buffer(
        struct.pack("<HxxxxxxQ", len(program), ctypes.addressof(code)), 16
    )
    kernel.syscall(SECCOMP[machine], SET_MODE_FILTER, 0, ctypes.byref(header))


def program_of(kind: str, machine: str, abi: int) -> list[Instruction]:
    """Return the filter for one kind of box, as instructions of the kernel's little machine."""
    column = 0 if machine == "x86_64" else 1
    program: list[Instruction] = [
        (LOAD, 0, 0, ARCHITECTURE_AT),
        (JUMP_EQ, 1, 0, ARCHITECTURES[machine]),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER_AT),
    ]
    if machine == "x86_64":
        program += [(JUMP_GE, 0, 1, X32), _refusal(errno.ENOSYS)]
    for number in _refused(kind, column, abi):
        program += [(JUMP_EQ, 0, 1, number), _refusal(errno.EPERM)]
    for numbers in _ABSENT.values():
        if absent := numbers[column]:
            program += [(JUMP_EQ, 0, 1, absent), _refusal(errno.EOPNOTSUPP)]
    program += _unless(_IOCTL[column], _RESERVATIONS, errno.EOPNOTSUPP)
    # What its arguments are is in memory, where no filter can look: libraries then use the old one.
    program += [(JUMP_EQ, 0, 1, _CLONE3[column]), _refusal(errno.ENOSYS)]
    program += _namespaces(_CLONE[column]) + _sockets(_SOCKET[column], FAMILIES[kind])
    if UNIX not in FAMILIES[kind]:
        program += _pairs(_SOCKETPAIR[column])
    if kind.startswith("landlock"):
        for call, values in _ONLY:
            program += [one for index, value in values for one in _only(call[column], index, value)]
        if abi < landlock.ABI_SIGNALS:
            program += [one for call, wishes in _OWNERS for one in _unless(call[column], wishes)]
    return [*program, (RETURN, 0, 0, ALLOW)]


def _refused(kind: str, column: int, abi: int) -> list[int]:
    tables = [_EVERYWHERE]
    if kind.startswith("landlock"):
        tables += [_BY_PATH, _SHARED]
        if abi < landlock.ABI_SIGNALS:
            tables.append(_SIGNALS)
    return [n for table in tables for numbers in table.values() if (n := numbers[column])]


def _refusal(code: int) -> Instruction:
    return (RETURN, 0, 0, ERROR | code)


def _argument(index: int) -> Instruction:
    return (LOAD, 0, 0, ARGUMENTS_AT + 8 * index)


def _namespaces(number: int) -> list[Instruction]:
    """No namespaces of one's own: each is more kernel to find a hole in."""
    body = [_argument(0), (JUMP_ANY_BIT, 0, 1, NEW_NAMESPACES), _refusal(errno.EPERM)]
    return _only_for(number, body)


def _sockets(number: int, families: tuple[int, ...]) -> list[Instruction]:
    body = [_argument(0)]
    for left, family in enumerate(reversed(families)):
        body.insert(1, (JUMP_EQ, left + 1, 0, family))
    return _only_for(number, [*body, _refusal(errno.EACCES)])


def _pairs(number: int) -> list[Instruction]:
    """Pairs of sockets that are connected for good: one of packets (also asked for as a raw one)
    may still send to whoever has a name."""
    body = [
        _argument(1),
        (AND, 0, 0, KIND),
        (JUMP_EQ, 2, 0, STREAM),
        (JUMP_EQ, 1, 0, SEQPACKET),
        _refusal(errno.EACCES),
    ]
    return _only_for(number, body)


def _only(number: int, index: int, value: int) -> list[Instruction]:
    """Allow it with this value as that argument alone."""
    low, high = ARGUMENTS_AT + 8 * index, ARGUMENTS_AT + 8 * index + 4
    body = [
        (LOAD, 0, 0, low),
        (JUMP_EQ, 0, 2, value),
        (LOAD, 0, 0, high),
        (JUMP_EQ, 1, 0, 0),
        _refusal(errno.EPERM),
    ]
    return _only_for(number, body)


def _unless(number: int, wishes: tuple[int, ...], code: int = errno.EPERM) -> list[Instruction]:
    """Refuse it with one of these as its second argument, which says what it shall do."""
    body = [_argument(1)]
    for wish in wishes:
        body += [(JUMP_EQ, 0, 1, wish), _refusal(code)]
    return _only_for(number, body)


def _only_for(number: int, body: list[Instruction]) -> list[Instruction]:
    """Run `body` for one call; where it doesn't return, the number is loaded again."""
    whole = [*body, (LOAD, 0, 0, NUMBER_AT)]
    return [(JUMP_EQ, 0, len(whole), number), *whole]
