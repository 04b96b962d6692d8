"""What the kernel offers and Python doesn't: prctl and raw system calls."""

from __future__ import annotations

import ctypes
import os

PR_SET_PDEATHSIG = 1
PR_SET_NO_NEW_PRIVS = 38
PR_SET_CHILD_SUBREAPER = 36

SIG_SETMASK = 2
SIGXFSZ = 25

_libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, *arguments: int) -> int:
    """Call prctl. Raises: OSError."""
    padded = [*arguments, 0, 0, 0, 0][:4]
    result = int(_libc.prctl(option, *map(ctypes.c_ulong, padded)))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}: {os.strerror(ctypes.get_errno())}")
    return result


def syscall(number: int, *arguments: object) -> int:
    """Make a system call. Raises: OSError."""
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = int(_libc.syscall(ctypes.c_long(number), *words))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"call {number}: {os.strerror(ctypes.get_errno())}")
    return result


def no_new_privileges() -> None:
    """Never gain a right again, by no set-uid program: what filters and rules ask for first."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def default_signals() -> None:
    """Have signals do what they do by default, and none wait: a program starts with those ignored
    that we ignore, such as SIGPIPE, or whoever started us (nohup), and can't always change that.

    But for SIGXFSZ: who writes too large a file is told so, and not ended.
    """
    for number in range(1, 32):
        if number != SIGXFSZ:
            _libc.signal(number, None)
    _libc.sigprocmask(SIG_SETMASK, (ctypes.c_ulong * 16)(), None)
