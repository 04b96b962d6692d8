"""Limits on what a process uses, and who it is."""

from __future__ import annotations

import ctypes
import os
import resource

from . import kernel

CAP_DAC_READ_SEARCH = 2
PR_SET_KEEPCAPS = 8
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
_CAPABILITY_VERSION_3 = 0x20080522
_CAPSET = {"x86_64": 126, "aarch64": 91}


def yield_to_others() -> None:
    """Be the first that the kernel ends when memory runs out, and the last that it runs."""
    os.nice(5)
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass  # not everywhere may it be written; the limits hold anyhow


def set_limits(limits: dict[str, int], uid: int | None, *, is_shared: bool) -> None:
    """Set the limits. `is_shared`: the user's other processes count against theirs.

    None on addresses (RLIMIT_AS): those are reserved, not used, and `sandbox/memory.py` looks at
    what is used.
    """
    memory = limits["memory_bytes"]
    processes = limits["processes"]
    if is_shared:
        processes += tasks_of(os.getuid() if uid is None else uid)
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: limits.get("cpu_s"),
        resource.RLIMIT_DATA: memory,
        resource.RLIMIT_NPROC: processes,
        resource.RLIMIT_FSIZE: limits["file_bytes"],
        resource.RLIMIT_NOFILE: limits["files_open"],
    }
    for kind, value in wanted.items():
        if value is not None:
            _, most = resource.getrlimit(kind)
            allowed = value if most == resource.RLIM_INFINITY else min(value, most)
            resource.setrlimit(kind, (allowed, allowed))


def tasks_of(uid: int) -> int:
    """Count the threads of a user; the limit on processes is about all of them."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.stat(f"/proc/{name}").st_uid == uid:
                    count += len(os.listdir(f"/proc/{name}/task"))
            except OSError:
                continue  # it has ended meanwhile
    return count


def change_user(uid: int | None, *, keep_reading: bool) -> None:
    """Become a user of one's own, with no right of root.

    Args:
        keep_reading: keep the one right to pass through folders of others. Only together with
            rules that say which: without namespaces a workspace is beneath folders of root.
    """
    if uid is None:
        _drop_rights()
        return
    if keep_reading:
        kernel.prctl(PR_SET_KEEPCAPS, 1)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    if keep_reading:
        try:
            _keep_only(1 << CAP_DAC_READ_SEARCH)
            kernel.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH)
        except PermissionError:
            _keep_only(0)  # a container's root hasn't got it: then paths have to be relative


def _drop_rights() -> None:
    """Have no right of root; a user other than root has none, and nothing is done."""
    if os.geteuid() == 0:
        _keep_only(0)


def _keep_only(capabilities: int) -> None:
    words = (ctypes.c_uint32 * 6)(*[capabilities] * 3, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    kernel.syscall(_CAPSET[os.uname().machine], ctypes.byref(header), ctypes.byref(words))
