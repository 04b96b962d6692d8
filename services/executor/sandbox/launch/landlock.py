"""The rules about files, put upon this process.

Source: the kernel's documentation of Landlock; its numbers are those of ``linux/landlock.h``.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct

from . import kernel

CREATE, ADD, RESTRICT = 444, 445, 446  # the same on all architectures
VERSION = 1
PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE = 1 << 4, 1 << 5
MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_SYM = 1 << 7, 1 << 8, 1 << 9, 1 << 10, 1 << 12
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
ALL_OF_ABI_3 = (1 << 15) - 1
NET_BIND, NET_CONNECT = 1, 2
SCOPE_ABSTRACT_SOCKETS, SCOPE_SIGNALS = 1, 2

OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
"""The rights that a rule about a file, and not a folder, may give."""
READ = EXECUTE | READ_FILE | READ_DIR
WRITE = (
    READ | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO
    | MAKE_SYM | REFER | TRUNCATE
)  # fmt: skip

ABI_MIN = 3
"""Linux 6.2: before it, anything that the user may write to could be cut to nothing."""
ABI_SIGNALS = 6
"""Linux 6.12: from then on no signal gets out of the box."""


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


_RULE = struct.Struct("=Qi")
"""`landlock_path_beneath_attr`, packed: what may be done, and the folder's descriptor."""


def abi() -> int:
    """Return the version of Landlock that runs here; 0: none."""
    try:
        return kernel.syscall(CREATE, None, 0, VERSION)
    except OSError:
        return 0


def rules(named: dict[str, list[str]]) -> int:
    """Return a set of rules that allows what is named; what isn't there is left out.

    Raises:
        OSError: Landlock isn't there, or is too old.
    """
    version = abi()
    if version < ABI_MIN:
        raise OSError(f"Landlock has version {version} here, {ABI_MIN} is needed")
    handled = ALL_OF_ABI_3 | (IOCTL_DEV if version >= 5 else 0)
    attributes = _Ruleset(handled, 0, _scoped(version))
    size = 8 if version < ABI_SIGNALS else ctypes.sizeof(attributes)
    ruleset = kernel.syscall(CREATE, ctypes.byref(attributes), size, 0)
    rights = {"read": READ, "write": WRITE, "device": READ_FILE | WRITE_FILE}
    for kind, paths in named.items():
        for path in paths:
            _allow(ruleset, path, rights[kind] & handled)
    return ruleset


def _scoped(version: int) -> int:
    return SCOPE_SIGNALS | SCOPE_ABSTRACT_SOCKETS if version >= ABI_SIGNALS else 0


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        is_folder = stat.S_ISDIR(os.fstat(opened).st_mode)
        rule = _RULE.pack(access if is_folder else access & OF_FILES, opened)
        kernel.syscall(ADD, ruleset, PATH_BENEATH, rule, 0)
    finally:
        os.close(opened)


def restrict(ruleset: int) -> None:
    """Put the rules upon this process and all that it starts, for good."""
    kernel.syscall(RESTRICT, ruleset, 0)
    os.close(ruleset)
